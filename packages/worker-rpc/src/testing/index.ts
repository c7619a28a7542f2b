export { describeWorkerLink, type ContractModels, type WorkerLinkHarness } from './contract.js';
export { RecordingListener, RecordingReplies } from './recorders.js';
export { FakeWorker } from './fake-worker.js';
export { InMemoryWorkers } from './in-memory-workers.js';
