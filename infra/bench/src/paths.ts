/** Where things are, from the place of the compiled files: nothing depends on the working directory. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const BENCH_FOLDER = fileURLToPath(new URL('..', import.meta.url));
export const REPOSITORY_ROOT = join(BENCH_FOLDER, '../..');
/** Model repositories, one folder per scenario; made by the first run, ignored by git. */
export const MODELS_FOLDER = join(BENCH_FOLDER, 'models');
export const RESULTS_FOLDER = join(BENCH_FOLDER, 'results');
export const SERVER_ENTRY = join(REPOSITORY_ROOT, 'apps/server/dist/main.js');
/** Starts a whole cluster; beside the build of the same repository. */
export const CLUSTER_ENTRY = join(REPOSITORY_ROOT, 'infra/cluster/dist/main.js');
export const SCHEDULER_ENTRY = join(REPOSITORY_ROOT, 'apps/scheduler/dist/main.js');

/** The compiled file of a process of the benchmark, e.g. `generators/generator.main`. */
export function processFile(name: string): string {
  return join(BENCH_FOLDER, 'dist', `${name}.js`);
}
