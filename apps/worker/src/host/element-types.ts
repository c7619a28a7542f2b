/** Protocol data types as ONNX Runtime's JavaScript API names and stores them. FP16 travels as its bits. */
import type { DataType } from '@paceline/tensor';
import type { TensorData } from './onnx-runtime.js';

interface ElementType {
  readonly ortType: string;
  /** The runtime's array over bytes that are there already; undefined for BYTES, which become strings. */
  readonly view: ((buffer: ArrayBuffer, byteOffset: number, count: number) => TensorData) | undefined;
  readonly bytes: number;
}

type ArrayType = new (buffer: ArrayBuffer, byteOffset: number, count: number) => Exclude<TensorData, string[]>;

function numeric(ortType: string, array: ArrayType & { readonly BYTES_PER_ELEMENT: number }): ElementType {
  return { ortType, view: (buffer, byteOffset, count) => new array(buffer, byteOffset, count), bytes: array.BYTES_PER_ELEMENT };
}

/** BF16 is missing: this runtime refuses it as a graph input or output. */
export const ELEMENT_TYPES: Readonly<Partial<Record<DataType, ElementType>>> = {
  BOOL: numeric('bool', Uint8Array),
  UINT8: numeric('uint8', Uint8Array),
  UINT16: numeric('uint16', Uint16Array),
  UINT32: numeric('uint32', Uint32Array),
  UINT64: numeric('uint64', BigUint64Array),
  INT8: numeric('int8', Int8Array),
  INT16: numeric('int16', Int16Array),
  INT32: numeric('int32', Int32Array),
  INT64: numeric('int64', BigInt64Array),
  FP16: numeric('float16', Uint16Array),
  FP32: numeric('float32', Float32Array),
  FP64: numeric('float64', Float64Array),
  BYTES: { ortType: 'string', view: undefined, bytes: 0 },
};
