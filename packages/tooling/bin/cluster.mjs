// `npm run cluster -- <flags>`: sets up what is missing, then runs the launcher of a cluster, which ends its processes in
// order at a signal.
import { launch } from '../setup/launch.mjs';
import { CLUSTER_MAIN } from '../setup/set-up.mjs';

await launch(CLUSTER_MAIN);
