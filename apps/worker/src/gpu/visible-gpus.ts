/**
 * Which of the machine's GPUs CUDA shows to a process, and how it numbers them: the rules of `CUDA_VISIBLE_DEVICES`. The list
 * of `NVIDIA_VISIBLE_DEVICES` is applied by the container runtime before, so only its words for "none" mean something here.
 */
import type { Gpu } from './gpus.js';
import type { InstalledGpu } from './nvidia-smi.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that hides every GPU whatever there is, with its value; undefined = some may be left. */
export function hiddenBy(env: Environment): string | undefined {
  const nvidia = env['NVIDIA_VISIBLE_DEVICES'];
  if (nvidia === 'none' || nvidia === 'void') return `NVIDIA_VISIBLE_DEVICES is '${nvidia}'`;
  const cuda = env['CUDA_VISIBLE_DEVICES'];
  const first = cuda?.split(',', 1)[0]?.trim();
  return first === undefined || ENTRY.test(first) ? undefined : `CUDA_VISIBLE_DEVICES is '${cuda}'`;
}

/** @param installed in the order of the bus, which is the one that hosts ask CUDA for */
export function visibleGpus(installed: readonly InstalledGpu[], env: Environment): Gpu[] {
  if (hiddenBy(env) !== undefined) return [];
  const list = env['CUDA_VISIBLE_DEVICES'];
  const chosen = list === undefined ? installed : selected(installed, list);
  return chosen.map(({ memoryBytes, name }, index) => ({ index, memoryBytes, name }));
}

type Chosen = Pick<InstalledGpu, 'uuid' | 'memoryBytes' | 'name'>;

/** A number, the beginning of a UUID, or a part of a GPU. */
const ENTRY = /^(\d+|(GPU|MIG)-.+)$/;

/** The list ends before the first entry that names nothing; a GPU that is named twice leaves nothing. */
function selected(installed: readonly InstalledGpu[], list: string): Chosen[] {
  const chosen: Chosen[] = [];
  for (const entry of list.split(',').map((each) => each.trim())) {
    const gpu = find(installed, entry);
    if (gpu === undefined) break;
    if (chosen.some(({ uuid }) => uuid === gpu.uuid)) return [];
    chosen.push(gpu);
  }
  return chosen;
}

function find(installed: readonly InstalledGpu[], entry: string): Chosen | undefined {
  if (!ENTRY.test(entry)) return undefined;
  // A part of a GPU has memory of its own, which the query does not tell.
  if (entry.startsWith('MIG-')) return { uuid: entry, memoryBytes: 0, name: entry };
  const matching = installed.filter(({ index, uuid }) => (/^\d+$/.test(entry) ? index === Number(entry) : uuid.startsWith(entry)));
  return matching.length === 1 ? matching[0] : undefined;
}
