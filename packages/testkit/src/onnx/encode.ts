/**
 * Writes the few ONNX messages that test models need, field by field with the protobuf wire writer, so that the testkit
 * depends on no schema of the product it tests. Field numbers are those of onnx.proto.
 */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { DataType } from '@paceline/tensor';

/** ONNX element type numbers of the data types that the protocol has. */
export const ONNX_TYPES: Readonly<Record<DataType, number>> = {
  FP32: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  BYTES: 8,
  BOOL: 9,
  FP16: 10,
  FP64: 11,
  UINT32: 12,
  UINT64: 13,
  BF16: 16,
};

/** A graph input or output. A string is a symbolic dimension. */
export interface OnnxValue {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly (number | string)[];
}

/** A constant. `data` is raw little-endian, as in the protocol; BYTES constants are not supported. */
export interface OnnxConstant {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** A bigint is an ONNX INT, a number a FLOAT. */
export type OnnxAttribute = bigint | number | string | readonly bigint[] | readonly number[] | readonly string[] | OnnxGraph;

export interface OnnxNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly name?: string;
  /** Operator set; default ONNX's own. */
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, OnnxAttribute>>;
}

export interface OnnxGraph {
  readonly name?: string;
  readonly nodes: readonly OnnxNode[];
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly constants?: readonly OnnxConstant[];
}

export interface OnnxModelOptions {
  readonly opset?: number;
  readonly irVersion?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Versions of further operator sets, e.g. `ai.onnx.ml`. */
  readonly domains?: Readonly<Record<string, number>>;
}

const LENGTH_DELIMITED = 2;
const VARINT = 0;
const FIXED32 = 5;

function text(w: BinaryWriter, field: number, value: string): void {
  w.tag(field, LENGTH_DELIMITED).string(value);
}

function nested(w: BinaryWriter, field: number, write: (w: BinaryWriter) => void): void {
  w.tag(field, LENGTH_DELIMITED).fork();
  write(w);
  w.join();
}

function writeValue(w: BinaryWriter, value: OnnxValue): void {
  text(w, 1, value.name);
  nested(w, 2, (type) => {
    nested(type, 1, (tensorType) => {
      tensorType.tag(1, VARINT).int32(ONNX_TYPES[value.datatype]);
      nested(tensorType, 2, (shape) => {
        for (const dim of value.shape) {
          nested(shape, 1, (d) => {
            if (typeof dim === 'number') d.tag(1, VARINT).int64(dim);
            else text(d, 2, dim);
          });
        }
      });
    });
  });
}

function writeConstant(w: BinaryWriter, constant: OnnxConstant): void {
  for (const dim of constant.shape) w.tag(1, VARINT).int64(dim);
  w.tag(2, VARINT).int32(ONNX_TYPES[constant.datatype]);
  text(w, 8, constant.name);
  w.tag(9, LENGTH_DELIMITED).bytes(constant.data);
}

function writeAttribute(w: BinaryWriter, name: string, value: OnnxAttribute): void {
  text(w, 1, name);
  const type = writeAttributeValue(w, value);
  w.tag(20, VARINT).int32(type);
}

/** @returns the number of the attribute's type in AttributeProto.AttributeType. */
function writeAttributeValue(w: BinaryWriter, value: OnnxAttribute): number {
  if (typeof value === 'number') {
    w.tag(2, FIXED32).float(value);
    return 1;
  }
  if (typeof value === 'bigint') {
    w.tag(3, VARINT).int64(value);
    return 2;
  }
  if (typeof value === 'string') {
    text(w, 4, value);
    return 3;
  }
  if ('nodes' in value) {
    nested(w, 6, (g) => writeGraph(g, value));
    return 5;
  }
  let type = 7; // an empty list is one of integers
  for (const item of value) {
    if (typeof item === 'number') {
      w.tag(7, FIXED32).float(item);
      type = 6;
    } else if (typeof item === 'bigint') {
      w.tag(8, VARINT).int64(item);
    } else {
      text(w, 9, item);
      type = 8;
    }
  }
  return type;
}

function writeNode(w: BinaryWriter, node: OnnxNode): void {
  for (const input of node.inputs) text(w, 1, input);
  for (const output of node.outputs) text(w, 2, output);
  if (node.name !== undefined) text(w, 3, node.name);
  text(w, 4, node.op);
  if (node.domain !== undefined) text(w, 7, node.domain);
  for (const [name, value] of Object.entries(node.attributes ?? {})) {
    nested(w, 5, (a) => writeAttribute(a, name, value));
  }
}

function writeGraph(w: BinaryWriter, graph: OnnxGraph): void {
  for (const node of graph.nodes) nested(w, 1, (n) => writeNode(n, node));
  text(w, 2, graph.name ?? 'g');
  for (const constant of graph.constants ?? []) nested(w, 5, (c) => writeConstant(c, constant));
  for (const value of graph.inputs) nested(w, 11, (v) => writeValue(v, value));
  for (const value of graph.outputs) nested(w, 12, (v) => writeValue(v, value));
}

/**
 * A complete ONNX file of one graph.
 * @param options opset defaults to 17 and the IR version to 8, which every ONNX Runtime of this decade loads.
 */
export function onnxModel(graph: OnnxGraph, options: OnnxModelOptions = {}): Uint8Array {
  const w = new BinaryWriter();
  w.tag(1, VARINT).int64(options.irVersion ?? 8);
  text(w, 2, 'paceline-testkit');
  nested(w, 7, (g) => writeGraph(g, graph));
  for (const [domain, version] of Object.entries({ '': options.opset ?? 17, ...options.domains })) {
    nested(w, 8, (opset) => {
      text(opset, 1, domain);
      opset.tag(2, VARINT).int64(version);
    });
  }
  for (const [key, value] of Object.entries(options.metadata ?? {})) {
    nested(w, 14, (entry) => {
      text(entry, 1, key);
      text(entry, 2, value);
    });
  }
  return w.finish();
}
