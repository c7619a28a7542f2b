/**
 * The data types of the open inference protocol, their wire names and sizes.
 * Canonical tensor form everywhere in Paceline: data type, shape, and raw little-endian row-major bytes; BYTES elements
 * are each a 4-byte little-endian length followed by that many bytes.
 */
export const DATA_TYPES = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'FP32',
  'FP64',
  'BYTES',
  'BF16',
] as const;

export type DataType = (typeof DATA_TYPES)[number];

const SIZES: Readonly<Record<DataType, number>> = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: 0,
  BF16: 2,
};

/** Bytes per element; 0 for BYTES, whose elements vary. */
export function elementSize(datatype: DataType): number {
  return SIZES[datatype];
}

/** Whether `name` is a wire name of the protocol ("FP32"), as opposed to a config name ("TYPE_FP32"). */
export function isDataType(name: unknown): name is DataType {
  return typeof name === 'string' && Object.hasOwn(SIZES, name);
}
