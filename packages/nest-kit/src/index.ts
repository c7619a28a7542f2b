export { readLinkSecurity, type LinkSecurity, type LinkTls } from './cluster/link-security.js';
export { MembershipBeat, type MembershipBeatOptions, type Members } from './cluster/membership-beat.js';
export { metricsOptions } from './http/metrics-options.js';
export { createMetricsServer, type Health, type MetricsServer, type MetricsServerOptions } from './http/metrics.server.js';
export { NestLogger } from './nest.logger.js';
export { readFirstLine } from './process/read-first-line.js';
export { runProcess, type ProcessDefinition, type RunningProcess } from './process/run-process.js';
export { waitForSignal } from './process/signals.js';
export { listenError, StartError } from './process/start-error.js';
