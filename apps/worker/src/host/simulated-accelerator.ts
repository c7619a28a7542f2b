/**
 * An accelerator that only takes time, as a host's runtime: alpha + beta x rows a run, with jitter and faults drawn from
 * a seeded sequence. It sleeps instead of computing, so that a machine with few cores can rehearse many. Each run draws the
 * same number of values whatever is switched on, so that a change of one rate leaves the other draws alone.
 */
import { elementCount, elementSize } from '@paceline/tensor';
import type { HostTensorSpec, LoadMessage } from '../host-protocol/messages.js';
import { HostError } from './host-error.js';
import type { HostRuntime, HostSession } from './host-runtime.js';

interface RawTensor {
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

type RawTensors = Readonly<Record<string, RawTensor>>;
type SimulatedLoad = Extract<LoadMessage, { backend: 'simulated' }>;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

export const simulatedHost: HostRuntime<RawTensor> = {
  api: 'simulated',
  load(message) {
    if (message.backend !== 'simulated') throw new HostError('INTERNAL', 'wrong_backend', `no simulation of '${message.backend}'`);
    return new SimulatedSession(message);
  },
};

class SimulatedSession implements HostSession<RawTensor> {
  readonly #random: () => number;
  /** Per output, the input that it repeats. */
  readonly #echoes: ReadonlyMap<string, string>;

  constructor(private readonly message: SimulatedLoad) {
    this.#random = pseudoRandom(message.seed);
    this.#echoes = pairOutputs(message.inputs, message.outputs);
  }

  feed(name: string, datatype: HostTensorSpec['datatype'], shape: readonly number[], data: Buffer): RawTensor {
    const bytes = elementCount(shape) * elementSize(datatype);
    if (datatype !== 'BYTES' && data.byteLength !== bytes) {
      throw new HostError('INVALID_ARGUMENT', 'input_size_mismatch', `expected ${bytes} bytes for input '${name}', got ${data.byteLength}`);
    }
    return { shape, data };
  }

  run(feeds: RawTensors, outputs: readonly string[]): RawTensors {
    const first = this.message.inputs[0];
    const rows = this.message.batches ? ((first && feeds[first.name]?.shape[0]) ?? 1) : 1;
    this.#takeTime(rows);
    return Object.fromEntries(outputs.map((name) => [name, this.#output(name, rows, feeds)]));
  }

  shapeOf({ shape }: RawTensor): readonly number[] {
    return shape;
  }

  bytesOf({ data }: RawTensor): Uint8Array {
    return data;
  }

  dispose(): void {
    // Nothing was taken.
  }

  #takeTime(rows: number): void {
    const { alphaMs, betaMs, jitter, failureRate, crashRate, hangRate } = this.message.accelerator;
    const begunMs = performance.now();
    const takesMs = (alphaMs + betaMs * rows) * (1 + jitter * (2 * this.#random() - 1));
    const hangs = this.#random() < hangRate;
    const crashes = this.#random() < crashRate;
    const fails = this.#random() < failureRate;
    if (hangs) Atomics.wait(sleeper, 0, 0);
    if (crashes) {
      sleepUntil(begunMs + takesMs / 2);
      process.kill(process.pid, 'SIGKILL');
    }
    sleepUntil(begunMs + takesMs);
    if (fails) throw new HostError('INTERNAL', 'model_failed', 'simulated failure: the model asks for it by simulated_failure_rate');
  }

  #output(name: string, rows: number, feeds: RawTensors): RawTensor {
    const spec = this.message.outputs.find((output) => output.name === name)!;
    const echoed = this.#echoes.get(name);
    const input = echoed === undefined ? undefined : feeds[echoed];
    if (input && fitsInto(spec.shape, input.shape)) return input;
    const shape = spec.shape.map((dim, i) => (dim !== -1 ? dim : i === 0 && this.message.batches ? rows : 1));
    const count = elementCount(shape);
    if (input && elementCount(input.shape) === count) return { shape, data: input.data };
    // An element of BYTES without content is its length alone.
    return { shape, data: new Uint8Array(count * (elementSize(spec.datatype) || 4)) };
  }
}

/**
 * Which input each output repeats: the first one of its data type and number of elements that no output before it
 * repeats, else the first one; none where no input is like it.
 */
export function pairOutputs(inputs: readonly HostTensorSpec[], outputs: readonly HostTensorSpec[]): Map<string, string> {
  const pairs = new Map<string, string>();
  const taken = new Set<string>();
  for (const output of outputs) {
    const alike = inputs.filter((input) => input.datatype === output.datatype && alikeShapes(input.shape, output.shape));
    const chosen = alike.find(({ name }) => !taken.has(name)) ?? alike[0];
    if (!chosen) continue;
    taken.add(chosen.name);
    pairs.set(output.name, chosen.name);
  }
  return pairs;
}

/** Whether the element counts are the same for every batch, as far as that can be known before one comes. */
function alikeShapes(input: readonly number[], output: readonly number[]): boolean {
  if (fitsInto(output, input)) return true;
  const variable = (shape: readonly number[]): number => shape.filter((dim) => dim === -1).length;
  const fixed = (shape: readonly number[]): number => elementCount(shape.map((dim) => (dim === -1 ? 1 : dim)));
  // One variable dimension each: the batch.
  return variable(input) === variable(output) && variable(input) <= 1 && fixed(input) === fixed(output);
}

/** Whether a tensor of `shape` is one that `declared` allows. */
function fitsInto(declared: readonly number[], shape: readonly number[]): boolean {
  return declared.length === shape.length && declared.every((dim, i) => dim === -1 || dim === shape[i]);
}

/** Numbers from 0 to below 1, always the same for a seed: mulberry32, by Tommy Ettinger (public domain). */
export function pseudoRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** How much later than asked the system wakes a sleeper, as of late; milliseconds. */
let lateMs = 0.06;
/** A busy machine wakes later still, which is no reason to get up early and poll. */
const MOST_LATE_MS = 0.2;

/** Sleeps, and polls only for what is shorter than a sleep can be. @param dueMs as of `performance.now()` */
function sleepUntil(dueMs: number): void {
  for (let nowMs = performance.now(); nowMs < dueMs;) {
    const wakeMs = dueMs - lateMs;
    if (wakeMs <= nowMs) {
      nowMs = performance.now();
      continue;
    }
    Atomics.wait(sleeper, 0, 0, wakeMs - nowMs);
    nowMs = performance.now();
    lateMs += (Math.min(MOST_LATE_MS, nowMs - wakeMs) - lateMs) / 8;
  }
}
