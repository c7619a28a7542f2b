export { describeStreams, type JoinedStreams, type JoinStreams } from './streams.contract.js';
