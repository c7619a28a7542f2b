export { describeWorkerLink, type ContractModels, type WorkerLinkHarness } from './contract.js';
export { RecordingListener, RecordingReplies } from './recorders.js';
