/**
 * Dense networks with seeded weights, in FP32 and in the form that ONNX Runtime's dynamic quantisation gives them:
 * weights INT8 with one scale per tensor, activations quantised at run time over the whole batch.
 */
import { onnxModel, type OnnxConstant, type OnnxNode } from '@paceline/testkit';
import { seededRandom } from '../random.js';

export interface DenseLayer {
  readonly rows: number;
  readonly columns: number;
  /** Row-major [rows, columns]. */
  readonly weights: Float32Array;
  readonly bias: Float32Array;
}

/** Layers of the given widths; weights keep the variance of their input, so that no activation dies or explodes. */
export function seededLayers(widths: readonly number[], seed: number): DenseLayer[] {
  const random = seededRandom(seed);
  return widths.slice(1).map((columns, i) => {
    const rows = widths[i] ?? 0;
    const span = Math.sqrt(6 / rows);
    const draw = (count: number, scale: number): Float32Array => Float32Array.from({ length: count }, () => (random() * 2 - 1) * scale);
    return { rows, columns, weights: draw(rows * columns, span), bias: draw(columns, 0.1) };
  });
}

const bytesOf = (values: Float32Array | Int8Array): Uint8Array => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

interface GraphParts {
  readonly nodes: OnnxNode[];
  readonly constants: OnnxConstant[];
}

function addDense(layer: DenseLayer, i: number, input: string, output: string, { nodes, constants }: GraphParts): void {
  constants.push(
    { name: `w${i}`, datatype: 'FP32', shape: [layer.rows, layer.columns], data: bytesOf(layer.weights) },
    { name: `b${i}`, datatype: 'FP32', shape: [layer.columns], data: bytesOf(layer.bias) },
  );
  nodes.push({ op: 'Gemm', inputs: [input, `w${i}`, `b${i}`], outputs: [output] });
}

function addQuantizedDense(layer: DenseLayer, i: number, input: string, output: string, { nodes, constants }: GraphParts): void {
  const peak = layer.weights.reduce((most, w) => Math.max(most, Math.abs(w)), 0);
  const scale = peak / 127;
  constants.push(
    {
      name: `wq${i}`,
      datatype: 'INT8',
      shape: [layer.rows, layer.columns],
      data: bytesOf(Int8Array.from(layer.weights, (w) => Math.round(w / scale))),
    },
    { name: `ws${i}`, datatype: 'FP32', shape: [], data: bytesOf(Float32Array.of(scale)) },
    { name: `wz${i}`, datatype: 'INT8', shape: [], data: bytesOf(Int8Array.of(0)) },
    { name: `b${i}`, datatype: 'FP32', shape: [layer.columns], data: bytesOf(layer.bias) },
  );
  nodes.push(
    { op: 'DynamicQuantizeLinear', inputs: [input], outputs: [`xq${i}`, `xs${i}`, `xz${i}`] },
    { op: 'MatMulInteger', inputs: [`xq${i}`, `wq${i}`, `xz${i}`, `wz${i}`], outputs: [`acc${i}`] },
    { op: 'Cast', inputs: [`acc${i}`], outputs: [`accf${i}`], attributes: { to: 1n } },
    { op: 'Mul', inputs: [`xs${i}`, `ws${i}`], outputs: [`s${i}`] },
    { op: 'Mul', inputs: [`accf${i}`, `s${i}`], outputs: [`m${i}`] },
    { op: 'Add', inputs: [`m${i}`, `b${i}`], outputs: [output] },
  );
}

/** x FP32 [N, first width] → y FP32 [N, last width]; ReLU between the layers. */
export function networkModel(layers: readonly DenseLayer[], precision: 'fp32' | 'int8'): Uint8Array {
  const parts: GraphParts = { nodes: [], constants: [] };
  const last = layers.length - 1;
  layers.forEach((layer, i) => {
    const input = i === 0 ? 'x' : `h${i}`;
    const output = i === last ? 'y' : `z${i}`;
    (precision === 'fp32' ? addDense : addQuantizedDense)(layer, i, input, output, parts);
    if (i < last) parts.nodes.push({ op: 'Relu', inputs: [output], outputs: [`h${i + 1}`] });
  });
  return onnxModel({
    ...parts,
    inputs: [{ name: 'x', datatype: 'FP32', shape: ['N', layers[0]?.rows ?? 0] }],
    outputs: [{ name: 'y', datatype: 'FP32', shape: ['N', layers[last]?.columns ?? 0] }],
  });
}
