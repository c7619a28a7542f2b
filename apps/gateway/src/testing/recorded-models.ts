/** For tests: the models of the recorded exchanges, answered in process. */
import type { Envelope, ServedModel } from '@paceline/protocol';
import { DATA_TYPES, type Tensor } from '@paceline/tensor';
import { echo, fakeModel } from './fake-lane.js';

/** What the recorded server served as inputs and outputs. */
const TYPES = DATA_TYPES.filter((type) => type !== 'BF16');

export const RECORDED_MODELS: readonly ServedModel[] = [
  ...TYPES.map((type) => fakeModel({ name: `identity_${type.toLowerCase()}`, inputs: [['INPUT0', type, [-1, 4]]] })),
  fakeModel({ name: 'identity_var', inputs: [['INPUT0', 'FP32', [-1, -1]]] }),
  fakeModel({ name: 'identity_rank2', inputs: [['INPUT0', 'INT32', [-1, -1, -1]]] }),
  fakeModel({ name: 'identity_bytes_var', inputs: [['INPUT0', 'BYTES', [-1, -1]]] }),
  fakeModel({ name: 'nobatch', maxBatchSize: 0, inputs: [['INPUT0', 'FP32', [-1, 3]]] }),
  fakeModel({
    name: 'add_sub',
    inputs: [
      ['INPUT0', 'INT32', [-1, 16]],
      ['INPUT1', 'INT32', [-1, 16]],
    ],
  }),
  fakeModel({ name: 'classify', maxBatchSize: 4, inputs: [['INPUT0', 'FP32', [-1, 5]]], labels: ['cat', 'dog', 'bird', 'fish', 'horse'] }),
  fakeModel({ name: 'classify_nolabel', maxBatchSize: 4, inputs: [['INPUT0', 'INT32', [-1, 5]]] }),
  fakeModel({ name: 'decoupled', inputs: [['INPUT0', 'INT32', [-1, 1]]], decoupled: true }),
];

function int32(tensor: Tensor): Int32Array {
  return new Int32Array(new Uint8Array(tensor.data).buffer);
}

/** What the model computes: sum and difference for add_sub, else its inputs. */
export function computeRecorded(envelope: Envelope): readonly Tensor[] {
  if (envelope.model !== 'add_sub') return echo(envelope);
  const [a, b] = envelope.inputs as [Tensor, Tensor];
  const right = int32(b);
  const results: Record<string, Int32Array> = {
    OUTPUT0: int32(a).map((x, i) => x + (right[i] as number)),
    OUTPUT1: int32(a).map((x, i) => x - (right[i] as number)),
  };
  return envelope.outputs.map((name) => ({
    name,
    datatype: 'INT32',
    shape: a.shape,
    data: new Uint8Array((results[name] as Int32Array).buffer),
  }));
}
