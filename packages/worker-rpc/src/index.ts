export type {
  Claimed,
  ConnectWorker,
  FencedBatch,
  ModelAnnouncement,
  RemoteWorker,
  RemoteWorkerListener,
  RunningRequest,
  WorkerHello,
} from './cluster-worker.js';
export type {
  Batch,
  BatchCompletion,
  BatchMember,
  InstanceEvent,
  LoadReport,
  LoadSpec,
  WarmupSample,
  WorkerLink,
  WorkerListener,
} from './worker-link.js';
export { STALE_EPOCH, SUPERSEDED, WORKER_DRAINING, type SchedulerSession, type ServedWorker } from './served-worker.js';
export * from './grpc/index.js';
