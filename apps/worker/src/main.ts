/** Entry of a worker's process. */
import { runProcess } from '@paceline/nest-kit';
import { startWorker } from './process/start-worker.js';

process.exit(await runProcess({ program: 'worker', start: startWorker }, process.argv.slice(2), process.env));
