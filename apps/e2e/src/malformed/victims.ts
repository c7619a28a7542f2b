/** The models that are attacked and the well-formed requests to them that attacks are made from. */
import { addSubModel, gatherModel, identityModel, type RepositoryModelFiles } from '@paceline/testkit';
import type { DataType } from '@paceline/tensor';
import type { Draw } from '../support/draw.js';

const CONFIG_TYPES = {
  BOOL: 'TYPE_BOOL',
  UINT64: 'TYPE_UINT64',
  INT64: 'TYPE_INT64',
  FP16: 'TYPE_FP16',
  FP32: 'TYPE_FP32',
  BYTES: 'TYPE_STRING',
} as const;
type VictimType = keyof typeof CONFIG_TYPES;

const tensor = (name: string, type: string, dims: readonly number[]): string =>
  `{ name: "${name}" data_type: ${type} dims: [ ${dims.join(', ')} ] }`;

function identity(name: string, datatype: VictimType, dims: readonly number[]): RepositoryModelFiles {
  const type = CONFIG_TYPES[datatype];
  return {
    name,
    config: `backend: "onnxruntime"
max_batch_size: 8
input ${tensor('INPUT0', type, dims)}
output ${tensor('OUTPUT0', type, dims)}
dynamic_batching { }`,
    versions: { '1': identityModel({ datatype: datatype satisfies DataType, dims }) },
  };
}

/** `gather` waits for batch-mates, so that what an attack does to its batch shows in the answers of others. */
export const VICTIM_MODELS: readonly RepositoryModelFiles[] = [
  identity('floats', 'FP32', [4]),
  identity('any_floats', 'FP32', [-1]),
  identity('halves', 'FP16', [4]),
  identity('integers', 'INT64', [4]),
  identity('unsigned', 'UINT64', [4]),
  identity('booleans', 'BOOL', [4]),
  identity('texts', 'BYTES', [-1]),
  {
    name: 'add_sub',
    config: `backend: "onnxruntime"
max_batch_size: 8
input [ ${tensor('INPUT0', 'TYPE_INT32', [16])}, ${tensor('INPUT1', 'TYPE_INT32', [16])} ]
output [ ${tensor('OUTPUT0', 'TYPE_INT32', [16])}, ${tensor('OUTPUT1', 'TYPE_INT32', [16])} ]
dynamic_batching { }`,
    versions: { '1': addSubModel({ datatype: 'INT32', dims: [16] }) },
  },
  {
    name: 'gather',
    config: `backend: "onnxruntime"
max_batch_size: 16
input ${tensor('INPUT0', 'TYPE_INT64', [1])}
output ${tensor('OUTPUT0', 'TYPE_FP32', [1])}
dynamic_batching { max_queue_delay_microseconds: 3000 }`,
    versions: { '1': gatherModel() },
  },
];

export interface JsonInput {
  name: string;
  datatype: DataType;
  shape: number[];
  data: unknown[];
}

export interface VictimRequest {
  readonly model: string;
  readonly inputs: readonly JsonInput[];
}

const VALUES: Readonly<Record<string, (draw: Draw) => unknown>> = {
  floats: (draw) => draw.int(-1000, 1000) / 8,
  any_floats: (draw) => draw.int(-1000, 1000) / 8,
  halves: (draw) => draw.int(-100, 100) / 4,
  integers: (draw) => draw.int(-1_000_000, 1_000_000),
  unsigned: (draw) => draw.int(0, 1_000_000),
  booleans: (draw) => draw.chance(0.5),
  texts: (draw) => draw.pick(['', 'a', 'déjà vu', '\u{1f680}', 'x'.repeat(40)]),
};
const TYPES: Readonly<Record<string, DataType>> = {
  floats: 'FP32',
  any_floats: 'FP32',
  halves: 'FP16',
  integers: 'INT64',
  unsigned: 'UINT64',
  booleans: 'BOOL',
  texts: 'BYTES',
};

/** A request that the server would answer. One in four goes to `gather`, half of those with an index that fails in the run. */
export function victimRequest(draw: Draw): VictimRequest {
  const rows = draw.int(1, 3);
  const list = (count: number, value: () => unknown): unknown[] => Array.from({ length: count }, value);
  if (draw.chance(0.25)) {
    const data = list(rows, () => (draw.chance(0.5) ? draw.int(0, 3) : draw.int(4, 99)));
    return { model: 'gather', inputs: [{ name: 'INPUT0', datatype: 'INT64', shape: [rows, 1], data }] };
  }
  if (draw.chance(0.15)) {
    const input = (name: string): JsonInput => ({
      name,
      datatype: 'INT32',
      shape: [rows, 16],
      data: list(rows * 16, () => draw.int(-99, 99)),
    });
    return { model: 'add_sub', inputs: [input('INPUT0'), input('INPUT1')] };
  }
  const model = draw.pick(Object.keys(VALUES));
  const data = list(rows * 4, () => VALUES[model]!(draw));
  return { model, inputs: [{ name: 'INPUT0', datatype: TYPES[model]!, shape: [rows, 4], data }] };
}

/** What the victim takes for an input, as raw bytes. */
export function rawOf(input: JsonInput): Buffer {
  const bytes = (size: number, write: (into: Buffer, value: unknown, at: number) => void): Buffer => {
    const into = Buffer.alloc(size * input.data.length);
    input.data.forEach((value, i) => write(into, value, i * size));
    return into;
  };
  switch (input.datatype) {
    case 'FP32':
      return bytes(4, (into, value, at) => void into.writeFloatLE(Number(value), at));
    case 'INT32':
      return bytes(4, (into, value, at) => void into.writeInt32LE(Number(value), at));
    case 'INT64':
      return bytes(8, (into, value, at) => void into.writeBigInt64LE(BigInt(value as number), at));
    case 'UINT64':
      return bytes(8, (into, value, at) => void into.writeBigUInt64LE(BigInt(value as number), at));
    case 'BOOL':
      return bytes(1, (into, value, at) => void into.writeUInt8(Number(value), at));
    case 'BYTES':
      return Buffer.concat(
        input.data.map((value) => {
          const text = Buffer.from(value as string);
          const length = Buffer.alloc(4);
          length.writeUInt32LE(text.length);
          return Buffer.concat([length, text]);
        }),
      );
    default:
      // FP16: bit patterns of no particular value; identity gives any of them back.
      return bytes(2, (into, value, at) => void into.writeUInt16LE((0x3c00 + Number(value) * 4) & 0x7bff, at));
  }
}
