/**
 * Small ONNX models with an answer that a test can work out by hand. `dims` never include the batch dimension: a model
 * gets a leading symbolic `b` unless `batching` is false. Inputs are INPUT0, INPUT1, outputs OUTPUT0, OUTPUT1.
 */
import { elementSize, type DataType } from '@paceline/tensor';
import { onnxModel, type OnnxGraph, type OnnxValue } from './encode.js';

export interface ModelShape {
  /** -1 makes a symbolic dimension `d<n>`. */
  readonly dims: readonly number[];
  /** Default true: a leading batch dimension of any size. */
  readonly batching?: boolean;
}

export interface TypedModelShape extends ModelShape {
  readonly datatype: DataType;
}

function value(name: string, datatype: DataType, { dims, batching = true }: ModelShape): OnnxValue {
  const shape = dims.map((dim, i) => (dim < 0 ? `d${i}` : dim));
  return { name, datatype, shape: batching ? ['b', ...shape] : shape };
}

/** The bytes of one number in the wire form of `datatype` (not FP16, BF16, BYTES). */
function scalarBytes(datatype: DataType, number: number): Uint8Array {
  const bytes = new Uint8Array(elementSize(datatype));
  const view = new DataView(bytes.buffer);
  switch (datatype) {
    case 'FP32':
      view.setFloat32(0, number, true);
      break;
    case 'FP64':
      view.setFloat64(0, number, true);
      break;
    case 'INT64':
    case 'UINT64':
      view.setBigInt64(0, BigInt(number), true);
      break;
    case 'INT32':
    case 'UINT32':
      view.setInt32(0, number, true);
      break;
    default:
      throw new Error(`a constant of datatype ${datatype} is not supported by the testkit`);
  }
  return bytes;
}

function float32Bytes(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer.slice(values.byteOffset, values.byteOffset + values.byteLength));
}

/** OUTPUT0 = INPUT0. Any data type and rank. */
export function identityModel(spec: TypedModelShape): Uint8Array {
  return onnxModel({
    nodes: [{ op: 'Identity', inputs: ['INPUT0'], outputs: ['OUTPUT0'] }],
    inputs: [value('INPUT0', spec.datatype, spec)],
    outputs: [value('OUTPUT0', spec.datatype, spec)],
  });
}

/** OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1. INT32, INT64, FP32 or FP64. */
export function addSubModel(spec: TypedModelShape): Uint8Array {
  return onnxModel({
    nodes: [
      { op: 'Add', inputs: ['INPUT0', 'INPUT1'], outputs: ['OUTPUT0'] },
      { op: 'Sub', inputs: ['INPUT0', 'INPUT1'], outputs: ['OUTPUT1'] },
    ],
    inputs: [value('INPUT0', spec.datatype, spec), value('INPUT1', spec.datatype, spec)],
    outputs: [value('OUTPUT0', spec.datatype, spec), value('OUTPUT1', spec.datatype, spec)],
  });
}

/** OUTPUT0 = INPUT0 x `factor`: tells versions of a model apart by their answers. */
export function scaleModel(spec: ModelShape & { readonly factor: number; readonly datatype?: DataType }): Uint8Array {
  const datatype = spec.datatype ?? 'FP32';
  return onnxModel({
    nodes: [{ op: 'Mul', inputs: ['INPUT0', 'C'], outputs: ['OUTPUT0'] }],
    inputs: [value('INPUT0', datatype, spec)],
    outputs: [value('OUTPUT0', datatype, spec)],
    constants: [{ name: 'C', datatype, shape: [], data: scalarBytes(datatype, spec.factor) }],
  });
}

/** OUTPUT0 [b, columns] = INPUT0 [b, rows] x weights, FP32. @param weights row-major, rows x columns. */
export function matmulModel(spec: { readonly rows: number; readonly columns: number; readonly weights: Float32Array }): Uint8Array {
  return onnxModel({
    nodes: [{ op: 'MatMul', inputs: ['INPUT0', 'W'], outputs: ['OUTPUT0'] }],
    inputs: [value('INPUT0', 'FP32', { dims: [spec.rows] })],
    outputs: [value('OUTPUT0', 'FP32', { dims: [spec.columns] })],
    constants: [{ name: 'W', datatype: 'FP32', shape: [spec.rows, spec.columns], data: float32Bytes(spec.weights) }],
  });
}

/**
 * As {@link matmulModel}, with activations quantised to 8 bits over the whole batch and one scale for all weights: the
 * answer to a row depends on the largest value among its batch-mates.
 */
export function dynamicInt8Model(spec: { readonly rows: number; readonly columns: number; readonly weights: Int8Array }): Uint8Array {
  return onnxModel({
    nodes: [
      { op: 'DynamicQuantizeLinear', inputs: ['INPUT0'], outputs: ['q', 'q_scale', 'q_zero'] },
      { op: 'MatMulInteger', inputs: ['q', 'W', 'q_zero'], outputs: ['sum'] },
      { op: 'Cast', inputs: ['sum'], outputs: ['sum_f'], attributes: { to: 1n } },
      { op: 'Mul', inputs: ['sum_f', 'q_scale'], outputs: ['OUTPUT0'] },
    ],
    inputs: [value('INPUT0', 'FP32', { dims: [spec.rows] })],
    outputs: [value('OUTPUT0', 'FP32', { dims: [spec.columns] })],
    constants: [{ name: 'W', datatype: 'INT8', shape: [spec.rows, spec.columns], data: new Uint8Array(spec.weights.buffer.slice(0)) }],
  });
}

/**
 * OUTPUT0 FP32 [b, 1] = table[INPUT0], INPUT0 INT64 [b, 1]. An index outside -n..n-1 makes the whole run fail, which is
 * how a poison request among good ones is made.
 */
export function gatherModel(table: readonly number[] = [10, 20, 30, 40]): Uint8Array {
  return onnxModel({
    nodes: [{ op: 'Gather', name: 'pick', inputs: ['TABLE', 'INPUT0'], outputs: ['OUTPUT0'], attributes: { axis: 0n } }],
    inputs: [value('INPUT0', 'INT64', { dims: [1] })],
    outputs: [value('OUTPUT0', 'FP32', { dims: [1] })],
    constants: [{ name: 'TABLE', datatype: 'FP32', shape: [table.length], data: float32Bytes(Float32Array.from(table)) }],
  });
}

/**
 * OUTPUT0 FP32 [b, 1] = INPUT0 FP32 [b, 1] after max(ITERS) multiplications of a size x size matrix; ITERS is INT64
 * [b, 1]. A request chooses how long it takes: about 0.2 ms an iteration at size 192 on one core.
 */
export function slowModel({ size = 192 }: { readonly size?: number } = {}): Uint8Array {
  const weights = new Float32Array(size * size).fill(1 / size);
  const matrix = { datatype: 'FP32' as const, shape: [size, size] };
  const body: OnnxGraph = {
    name: 'body',
    nodes: [
      { op: 'Identity', inputs: ['keep_in'], outputs: ['keep_out'] },
      { op: 'MatMul', inputs: ['m_in', 'W'], outputs: ['m_out'] },
    ],
    inputs: [
      { name: 'i', datatype: 'INT64', shape: [] },
      { name: 'keep_in', datatype: 'BOOL', shape: [] },
      { name: 'm_in', ...matrix },
    ],
    outputs: [
      { name: 'keep_out', datatype: 'BOOL', shape: [] },
      { name: 'm_out', ...matrix },
    ],
  };
  return onnxModel({
    nodes: [
      { op: 'ReduceMax', inputs: ['ITERS'], outputs: ['trips'], attributes: { keepdims: 0n } },
      { op: 'Loop', inputs: ['trips', 'GO', 'W'], outputs: ['m'], attributes: { body } },
      { op: 'ReduceMax', inputs: ['m'], outputs: ['top'], attributes: { keepdims: 0n } },
      { op: 'Mul', inputs: ['top', 'ZERO'], outputs: ['nothing'] },
      { op: 'Add', inputs: ['INPUT0', 'nothing'], outputs: ['OUTPUT0'] },
    ],
    inputs: [value('INPUT0', 'FP32', { dims: [1] }), value('ITERS', 'INT64', { dims: [1] })],
    outputs: [value('OUTPUT0', 'FP32', { dims: [1] })],
    constants: [
      { name: 'W', ...matrix, data: float32Bytes(weights) },
      { name: 'ZERO', datatype: 'FP32', shape: [], data: scalarBytes('FP32', 0) },
      { name: 'GO', datatype: 'BOOL', shape: [], data: Uint8Array.of(1) },
    ],
  });
}

/** OUTPUT0 = INPUT0 + INPUT1 without batching, FP32 `dims`; INPUT1 may be left out and is then all `fallback`. */
export function optionalInputModel({ dims, fallback }: { readonly dims: readonly number[]; readonly fallback: number }): Uint8Array {
  const count = dims.reduce((a, b) => a * b, 1);
  const spec = { dims, batching: false };
  return onnxModel({
    nodes: [{ op: 'Add', inputs: ['INPUT0', 'INPUT1'], outputs: ['OUTPUT0'] }],
    inputs: [value('INPUT0', 'FP32', spec), value('INPUT1', 'FP32', spec)],
    outputs: [value('OUTPUT0', 'FP32', spec)],
    constants: [{ name: 'INPUT1', datatype: 'FP32', shape: dims, data: float32Bytes(new Float32Array(count).fill(fallback)) }],
  });
}
