/**
 * What the clients of a shaken cluster ask: every question has numbers of its own, and what must come back follows from
 * them, so that an answer that is wrong, or somebody else's, is seen.
 */
import { scaleModel, type RepositoryModelFiles } from '@paceline/testkit';
import type { RawInput } from '../support/grpc-infer.js';

/** Simulated: repeats its inputs, after a time. */
export const ECHO = 'echo';
/** ONNX Runtime: three times its input. */
export const TRIPLE = 'triple';
/** Simulated, with an input above what travels through Redis: workers fetch it from the gateway. */
export const WIDE = 'wide';
const WIDE_COUNT = 2048;

const simulated = (alphaMs: number): string =>
  Object.entries({ alpha_ms: alphaMs, beta_ms: 0.5, jitter: 0.2 })
    .map(([key, value]) => `parameters { key: "simulated_${key}" value { string_value: "${value}" } }`)
    .join('\n');

export const QUESTIONED_MODELS: readonly RepositoryModelFiles[] = [
  {
    name: ECHO,
    config: `backend: "simulated" max_batch_size: 8 dynamic_batching { }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "ECHO" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group { count: 1 kind: KIND_CPU }
${simulated(15)}`,
    versions: { '1': {} },
  },
  {
    name: WIDE,
    config: `backend: "simulated" max_batch_size: 4 dynamic_batching { }
input { name: "X" data_type: TYPE_FP32 dims: [ ${WIDE_COUNT} ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ ${WIDE_COUNT} ] }
instance_group { count: 1 kind: KIND_CPU }
${simulated(10)}`,
    versions: { '1': {} },
  },
  {
    name: TRIPLE,
    config: `backend: "onnxruntime" max_batch_size: 8 dynamic_batching { }
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
instance_group { count: 1 kind: KIND_CPU }`,
    versions: { '1': scaleModel({ dims: [1], factor: 3 }) },
  },
];

export interface Question {
  readonly id: string;
  readonly model: string;
  readonly inputs: readonly RawInput[];
  /** The bytes of each output, by name. */
  readonly expected: ReadonlyMap<string, Buffer>;
}

export const float32 = (values: readonly number[]): Buffer => Buffer.from(Float32Array.from(values).buffer);

/** The protocol's form of one string. */
export function stringElement(text: string): Buffer {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(4);
  head.writeUInt32LE(bytes.length);
  return Buffer.concat([head, bytes]);
}

/** @param number unlike that of any other question; up to 4 million, so that a third of it is exact in FP32 */
export function question(model: string, number: number): Question {
  const id = `q${number}`;
  const input = (name: string, count: number, data: Buffer): RawInput => ({ name, datatype: 'FP32', shape: [1, count], data });
  if (model === TRIPLE) {
    return { id, model, inputs: [input('INPUT0', 1, float32([number]))], expected: new Map([['OUTPUT0', float32([3 * number])]]) };
  }
  if (model === WIDE) {
    const data = float32(Array.from({ length: WIDE_COUNT }, (_, i) => number + i / 4096));
    return { id, model, inputs: [input('X', WIDE_COUNT, data)], expected: new Map([['Y', data]]) };
  }
  const data = float32([number, -number]);
  const text = stringElement(`text of ${id}`);
  return {
    id,
    model,
    inputs: [input('X', 2, data), { name: 'TEXT', datatype: 'BYTES', shape: [1, 1], data: text }],
    expected: new Map([['Y', data], ['ECHO', text]]),
  }; // prettier-ignore
}
