export { createLocalWorker, LocalWorker, type LocalWorkerOptions, type WorkerStatistics } from './local-worker.js';
