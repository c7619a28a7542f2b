export { describeWorkerLink, type ContractModels, type WorkerLinkHarness } from './contract.js';
export { RecordingListener, RecordingReplies } from './recorders.js';
export { FakeWorker } from './fake-worker.js';
export { InMemoryWorkers } from './in-memory-workers.js';
export { CONTRACT_WORKER, describeRemoteWorker, type RemoteWorkerHarness } from './remote-contract.js';
export { RemoteRecorder, type RemoteEvent } from './remote-recorder.js';
