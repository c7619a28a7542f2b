/** Entry of the launcher: runs the programs of this repository. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { launch } from './launch.js';

const path = (fromRoot: string): string => fileURLToPath(new URL(`../../../${fromRoot}`, import.meta.url));
const mains = {
  gateway: [path('apps/gateway/dist/main.js')],
  scheduler: [path('apps/scheduler/dist/main.js')],
  worker: [path('apps/worker/dist/main.js')],
};
const nodeFlags = readFileSync(path('apps/server/node.flags'), 'utf8')
  .split(/\s+/)
  .filter((flag) => flag !== '');

const exampleModels = path('apps/server/example-models');

process.exit(await launch(process.argv.slice(2), process.env, { mains, nodeFlags, exampleModels }));
