/** The model repository that the end-to-end tests serve: small models whose answers can be worked out by hand. */
import { addSubModel, gatherModel, identityModel, slowModel, type RepositoryModelFiles } from '@paceline/testkit';
import { DATA_TYPES, type DataType } from '@paceline/tensor';

/** Everything the ONNX Runtime serves as an input and an output. */
const IDENTITY_TYPES = DATA_TYPES.filter((type) => type !== 'BF16');

const configType = (datatype: DataType): string => `TYPE_${datatype === 'BYTES' ? 'STRING' : datatype}`;

function tensor(name: string, datatype: DataType, dims: readonly number[]): string {
  return `{ name: "${name}" data_type: ${configType(datatype)} dims: [ ${dims.join(', ')} ] }`;
}

function identity(name: string, datatype: DataType, dims: readonly number[], rest = ''): RepositoryModelFiles {
  return {
    name,
    config: `backend: "onnxruntime"
max_batch_size: 8
input ${tensor('INPUT0', datatype, dims)}
output ${tensor('OUTPUT0', datatype, dims)}
${rest}`,
    versions: { '1': identityModel({ datatype, dims }) },
  };
}

/** Every model of the suite; `broken_config` cannot load and must harm nobody. */
export const FIXTURE_MODELS: readonly RepositoryModelFiles[] = [
  ...IDENTITY_TYPES.map((t) => identity(`identity_${t.toLowerCase()}`, t, [4])),
  identity('batcher', 'FP32', [4], 'dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 50000 }'),
  {
    name: 'add_sub',
    config: `backend: "onnxruntime"
max_batch_size: 8
input [ ${tensor('INPUT0', 'INT32', [16])}, ${tensor('INPUT1', 'INT32', [16])} ]
output [ ${tensor('OUTPUT0', 'INT32', [16])}, ${tensor('OUTPUT1', 'INT32', [16])} ]`,
    versions: { '1': addSubModel({ datatype: 'INT32', dims: [16] }) },
  },
  {
    name: 'gather',
    config: `backend: "onnxruntime"
max_batch_size: 64
input ${tensor('INPUT0', 'INT64', [1])}
output ${tensor('OUTPUT0', 'FP32', [1])}
dynamic_batching { max_queue_delay_microseconds: 20000 }`,
    versions: { '1': gatherModel() },
  },
  {
    name: 'slow',
    config: `backend: "onnxruntime"
max_batch_size: 4
input [ ${tensor('INPUT0', 'FP32', [1])}, ${tensor('ITERS', 'INT64', [1])} ]
output ${tensor('OUTPUT0', 'FP32', [1])}
dynamic_batching { }`,
    versions: { '1': slowModel() },
  },
  // No config.pbtxt: everything is completed from the model file.
  { name: 'autocomplete', versions: { '1': identityModel({ datatype: 'FP32', dims: [3] }) } },
  { name: 'broken_config', config: 'max_batch_size: "eight"\n', versions: { '1': identityModel({ datatype: 'FP32', dims: [3] }) } },
];
