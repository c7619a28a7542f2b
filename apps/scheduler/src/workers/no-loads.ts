/** The part of a worker link that lanes have no business with: in a cluster placement loads through the workers' own ports. */
import type { WorkerLink } from '@paceline/worker-rpc';

export const NO_LOADS: Pick<WorkerLink, 'load' | 'unload' | 'setListener'> = {
  load: () => Promise.reject(new Error('a lane asked for a load, which is placement. This is a bug.')),
  unload: () => Promise.reject(new Error('a lane asked for an unload, which is placement. This is a bug.')),
  setListener: () => {
    throw new Error('completions reach lanes through their partition. This is a bug.');
  },
};
