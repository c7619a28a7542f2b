export { describeStreams, type JoinedStreams, type JoinStreams } from './streams.contract.js';
export { InMemoryLinks } from './in-memory-links.js';
export { GatewayReports, SchedulerReports } from './link-reports.js';
export { describeLinks, type LinkFactory } from './links.contract.js';
export { routingOf, servedModel } from './routings.js';
