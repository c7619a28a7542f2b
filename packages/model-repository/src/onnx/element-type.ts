/** ONNX element types by number: their names, and the protocol's data type where there is one. */
import type { DataType } from '@paceline/tensor';

const NAMES = [
  'UNDEFINED', 'FLOAT', 'UINT8', 'INT8', 'UINT16', 'INT16', 'INT32', 'INT64', 'STRING', 'BOOL', 'FLOAT16', 'DOUBLE',
  'UINT32', 'UINT64', 'COMPLEX64', 'COMPLEX128', 'BFLOAT16', 'FLOAT8E4M3FN', 'FLOAT8E4M3FNUZ', 'FLOAT8E5M2',
  'FLOAT8E5M2FNUZ', 'UINT4', 'INT4', 'FLOAT4E2M1', 'FLOAT8E8M0',
]; // prettier-ignore

const DATA_TYPES: Readonly<Record<string, DataType>> = {
  FLOAT: 'FP32',
  UINT8: 'UINT8',
  INT8: 'INT8',
  UINT16: 'UINT16',
  INT16: 'INT16',
  INT32: 'INT32',
  INT64: 'INT64',
  STRING: 'BYTES',
  BOOL: 'BOOL',
  FLOAT16: 'FP16',
  DOUBLE: 'FP64',
  UINT32: 'UINT32',
  UINT64: 'UINT64',
  BFLOAT16: 'BF16',
};

export function elementTypeName(number: number): string {
  return NAMES[number] ?? `element type ${number}`;
}

/** undefined for types that the protocol does not have. */
export function elementDataType(number: number): DataType | undefined {
  return DATA_TYPES[elementTypeName(number)];
}
