// ONNX files: what they say about themselves, at any size, and what is refused before a runtime sees the file.
import { closeSync, openSync, symlinkSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  identityModel,
  matmulModel,
  onnxModel,
  optionalInputModel,
  slowModel,
  temporaryModelRepository,
  type TemporaryRepository,
} from '@paceline/testkit';
import { DATA_TYPES } from '@paceline/tensor';
import { describeOnnxFile } from './describe.js';

let disk: TemporaryRepository;
let path: string;
beforeEach(() => {
  disk = temporaryModelRepository();
  path = join(disk.root, 'model.onnx');
});
afterEach(() => disk.remove());

const describeBytes = (bytes: Uint8Array) => {
  writeFileSync(path, bytes);
  return describeOnnxFile(path, 'm/1/model.onnx');
};

/** One length-delimited field. */
const field = (number: number, bytes: Uint8Array): Uint8Array => new BinaryWriter().tag(number, 2).bytes(bytes).finish();
const text = (number: number, value: string): Uint8Array => new BinaryWriter().tag(number, 2).string(value).finish();
const join2 = (...parts: Uint8Array[]): Uint8Array => Buffer.concat(parts);

describe('description', () => {
  test.each(DATA_TYPES.map((datatype) => [datatype]))('of an identity of %s', async (datatype) => {
    const { inputs, outputs } = await describeBytes(identityModel({ datatype, dims: [3, -1] }));
    expect(inputs).toMatchObject([{ name: 'INPUT0', datatype, shape: [-1, 3, -1], hasDefault: false }]);
    expect(outputs).toMatchObject([{ name: 'OUTPUT0', datatype, shape: [-1, 3, -1] }]);
  });

  test('of versions, producer and metadata', async () => {
    const value = { name: 'x', datatype: 'FP32' as const, shape: [] };
    const graph = { nodes: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }], inputs: [value], outputs: [{ ...value, name: 'y' }] };
    const found = await describeBytes(onnxModel(graph, { opset: 15, irVersion: 7, metadata: { author: 'me' } }));
    expect(found).toMatchObject({ irVersion: 7, opsets: { '': 15 }, producer: 'paceline-testkit', metadata: { author: 'me' } });
    expect(found.inputs[0]?.shape).toEqual([]);
  });

  test('of the operators it is made of, nested ones included, each once', async () => {
    expect((await describeBytes(matmulModel({ rows: 2, columns: 1, weights: new Float32Array(2) }))).operators).toEqual(['MatMul']);
    const { operators } = await describeBytes(slowModel({ size: 4 }));
    expect([...operators].sort()).toEqual(['Add', 'Identity', 'Loop', 'MatMul', 'Mul', 'ReduceMax']);
  });

  test('marks inputs that have a default, and does not mind graphs inside nodes', async () => {
    expect((await describeBytes(optionalInputModel({ dims: [2], fallback: 1 }))).inputs.map(({ hasDefault }) => hasDefault)).toEqual([
      false,
      true,
    ]);
    expect((await describeBytes(slowModel({ size: 4 }))).inputs.map(({ name }) => name)).toEqual(['INPUT0', 'ITERS']);
  });

  test('of types without a tensor and of unknown rank', async () => {
    const sequence = field(11, join2(text(1, 's'), field(2, field(4, new Uint8Array()))));
    const noRank = field(12, join2(text(1, 'o'), field(2, field(1, Uint8Array.of(8, 17)))));
    const { inputs, outputs } = await describeBytes(field(7, join2(sequence, noRank)));
    expect(inputs).toEqual([{ name: 's', datatype: undefined, elementType: 'sequence', shape: undefined, hasDefault: false }]);
    expect(outputs).toEqual([{ name: 'o', datatype: undefined, elementType: 'FLOAT8E4M3FN', shape: undefined, hasDefault: false }]);
  });

  test('of weights larger than any buffer steps over them', async () => {
    // The weights are a hole of 3 GiB in the file; what describes the model stands behind it.
    const weights = 3 * 1024 ** 3;
    const small = matmulModel({ rows: 1, columns: 1, weights: Float32Array.of(1) });
    // The graph's bytes: behind its tag and its length, which is below 128 and so one byte.
    const graphAt = small.indexOf(0x3a) + 2;
    const behind = small.subarray(graphAt, graphAt + (small[graphAt - 1] ?? 0));
    const tensorHead = new BinaryWriter().tag(9, 2).uint32(weights).finish();
    const tensorBytes = tensorHead.length + weights;
    const initializerHead = new BinaryWriter().tag(5, 2).uint32(tensorBytes).finish();
    const graphBytes = initializerHead.length + tensorBytes + behind.length;
    const head = join2(Uint8Array.of(8, 8), new BinaryWriter().tag(7, 2).uint32(graphBytes).finish(), initializerHead, tensorHead);
    writeFileSync(path, head);
    truncateSync(path, head.length + weights);
    const file = openSync(path, 'r+');
    writeSync(file, behind, 0, behind.length, head.length + weights);
    closeSync(file);
    const before = process.memoryUsage().rss;
    const { inputs, outputs } = await describeOnnxFile(path, 'm/1/model.onnx');
    expect([inputs[0]?.name, outputs[0]?.name]).toEqual(['INPUT0', 'OUTPUT0']);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 ** 2);
  });
});

describe('a file that is no model', () => {
  const good = identityModel({ datatype: 'FP32', dims: [4] });

  test.each([
    ['empty', new Uint8Array(), /does not have a graph/],
    ['text', Buffer.from('version https://git-lfs.github.com/spec/v1\n'), /Protobuf parsing failed/],
    ['cut short', good.subarray(0, good.length - 20), /Protobuf parsing failed: it (is cut short|ends inside a number)/],
    ['a length beyond the end', Uint8Array.of(0x3a, 0xff, 0xff, 0xff, 0x7f, 1), /it is cut short/],
    ['a number without end', Uint8Array.of(8, ...new Array<number>(11).fill(0xff)), /longer than 10 bytes/],
    ['a group', Uint8Array.of(0x0b, 0x0c), /unknown wire type 3/],
    ['field 0', Uint8Array.of(0x02, 0x00), /field number 0/],
  ])('%s', async (_name, bytes, message) => {
    await expect(describeBytes(bytes)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) });
  });

  test('graphs nested without end are refused, not followed', async () => {
    let graph: Uint8Array = text(2, 'g');
    for (let i = 0; i < 200; i++) graph = field(1, field(5, field(6, graph)));
    await expect(describeBytes(field(7, graph))).rejects.toThrow(/nest deeper than 64 levels/);
  });

  test('a folder, or nothing', async () => {
    await expect(describeOnnxFile(join(disk.root, 'nothing'), 'm/1/model.onnx')).rejects.toThrow('failed to open file m/1/model.onnx');
    await expect(describeOnnxFile(disk.root, 'm/1/model.onnx')).rejects.toThrow(/Load model from m\/1\/model.onnx failed/);
  });
});

describe('external data', () => {
  const external = (location: string): Uint8Array => join2(text(8, 'W'), field(13, join2(text(1, 'location'), text(2, location))));
  const inGraph = (location: string): Uint8Array => field(7, field(5, external(location)));
  const inNode = (location: string): Uint8Array => field(7, field(1, field(5, field(5, external(location)))));
  const inSubgraph = (location: string): Uint8Array => field(7, field(1, field(5, field(6, field(5, external(location))))));
  const inFunction = (location: string): Uint8Array =>
    join2(field(7, text(2, 'g')), field(25, field(7, field(5, field(10, external(location))))));

  test('beside the model is fine, missing is not', async () => {
    writeFileSync(join(disk.root, 'weights.bin'), '');
    await describeBytes(inGraph('weights.bin'));
    await describeBytes(inGraph('./weights.bin'));
    await expect(describeBytes(inGraph('other.bin'))).rejects.toThrow("external data file 'other.bin' of the model does not exist");
  });

  test.each([
    ['a graph', inGraph],
    ['an attribute', inNode],
    ['a subgraph', inSubgraph],
    ['a function', inFunction],
  ])('in %s cannot lead out of the folder', async (_name, build) => {
    for (const location of ['../../etc/hostname', '/etc/hostname', 'a/../../x', 'link']) {
      if (location === 'link') symlinkSync('/etc/hostname', join(disk.root, 'link'));
      await expect(describeBytes(build(location))).rejects.toThrow(/^external data location "/);
    }
  });
});
