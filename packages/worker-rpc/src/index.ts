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
