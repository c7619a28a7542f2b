export { createLocalWorker, LocalWorker, type WorkerStatistics } from './local-worker.js';
export type { LocalWorkerOptions } from './local-worker.options.js';
export {
  RESTART_REASONS,
  type InstanceMemory,
  type InstanceRestart,
  type RestartReason,
  type WorkerObserver,
} from './supervision/observer.js';
export { judgeBackendOptions, type WorkerDevices } from './backend/load-backend.js';
export type { OptionRemark } from './onnx/session-options.js';
export { startWorker, type WorkerProcess } from './process/start-worker.js';
export { detectGpus, type GpuSources } from './gpu/detect-gpus.js';
export { gpusFor, NO_GPUS, type Gpu, type GpuInventory } from './gpu/gpus.js';
