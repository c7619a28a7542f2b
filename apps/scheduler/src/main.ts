/** Entry of a scheduler's process. */
import { runProcess } from '@paceline/nest-kit';
import { startScheduler } from './process/start-scheduler.js';

process.exit(await runProcess({ program: 'scheduler', start: startScheduler }, process.argv.slice(2), process.env));
