// Reading a large model file must not hold up the requests of other models: the thread comes free after
// each few KB. Counted in bytes, because times measure the machine and whoever else runs on it.
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { onnxModel } from '@paceline/testkit';
import { describeOnnxFile } from './describe.js';
import { siftModel, type ReadableFile } from './sieve.js';

const WEIGHT_BYTES = 500 * 1024 * 1024;
const NODES = 20_000;
/** At least this much is written for all nodes. */
const NODE_BYTES = 20 * NODES;
/** Some hundreds of nodes. */
const WALKED_AT_ONCE_BYTES = 16 * 1024;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'paceline-onnx-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A length-delimited field: its tag and length, and how many bytes it has with its content. */
function field(number: number, length: number): { readonly head: Buffer; readonly total: number } {
  const head = [number * 8 + 2];
  let rest = length;
  for (; rest > 127; rest = Math.floor(rest / 128)) head.push((rest % 128) + 128);
  head.push(rest);
  return { head: Buffer.from(head), total: head.length + length };
}

/** A graph of many nodes, and one initializer of 500 MB of which the disk holds nothing. */
function writeLargeModel(path: string): void {
  const nodes = Array.from({ length: NODES }, (_, i) => ({
    op: 'Identity',
    inputs: [i === 0 ? 'INPUT0' : `t${i}`],
    outputs: [i === NODES - 1 ? 'OUTPUT0' : `t${i + 1}`],
  }));
  const value = (name: string) => ({ name, datatype: 'FP32', shape: ['b', 4] }) as const;
  const small = Buffer.from(onnxModel({ nodes, inputs: [value('INPUT0')], outputs: [value('OUTPUT0')] }));
  const data = field(9, WEIGHT_BYTES);
  const tensor = field(5, data.total);
  const graph = field(7, tensor.total);
  const file = openSync(path, 'w');
  writeSync(file, Buffer.concat([small, graph.head, tensor.head, data.head]));
  ftruncateSync(file, small.length + graph.total);
  closeSync(file);
}

test('500 MB of weights and 20,000 nodes', async () => {
  const path = join(folder, 'model.onnx');
  writeLargeModel(path);
  const { inputs, outputs } = await describeOnnxFile(path, 'm/1/model.onnx');
  expect([inputs[0]?.name, outputs[0]?.name]).toEqual(['INPUT0', 'OUTPUT0']);

  const file = await open(path, 'r');
  const reads: number[] = [];
  const { size } = await file.stat();
  const counting: ReadableFile = {
    read: (buffer, offset, length, position) => {
      reads.push(length);
      return file.read(buffer, offset, length, position);
    },
  };
  const { description } = await siftModel(counting, size);
  await file.close();
  // Between two reads the thread walks over what the last one brought, so that this is what others may have to wait for.
  expect(Math.max(...reads)).toBeLessThanOrEqual(WALKED_AT_ONCE_BYTES);
  // The nodes are walked over, the weights are not.
  expect(reads.length).toBeGreaterThan(NODE_BYTES / WALKED_AT_ONCE_BYTES);
  expect(reads.reduce((sum, length) => sum + length, 0)).toBeLessThan(100 * NODES);
  // What is parsed in one piece at the end does not grow with the nodes.
  expect(description.length).toBeLessThan(WALKED_AT_ONCE_BYTES);
});
