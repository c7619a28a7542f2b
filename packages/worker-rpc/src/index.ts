export type {
  Batch,
  BatchCompletion,
  BatchMember,
  InstanceEvent,
  LoadReport,
  LoadSpec,
  WorkerLink,
  WorkerListener,
} from './worker-link.js';
