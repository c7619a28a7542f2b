export { createLocalWorker, LocalWorker, type LocalWorkerOptions, type WorkerStatistics } from './local-worker.js';
export {
  RESTART_REASONS,
  type InstanceMemory,
  type InstanceRestart,
  type RestartReason,
  type WorkerObserver,
} from './supervision/observer.js';
export { judgeOnnxOptions, type OptionRemark } from './onnx/session-options.js';
