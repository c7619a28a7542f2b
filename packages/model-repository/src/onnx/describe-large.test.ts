// Reading a large model file must not hold up the requests of other models: the thread comes free at least every 20 ms.
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { onnxModel } from '@paceline/testkit';
import { describeOnnxFile } from './describe.js';

const WEIGHT_BYTES = 500 * 1024 * 1024;
const NODES = 20_000;

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
  let longestMs = 0;
  let turns = 0;
  let done = false;
  // The processor time of this thread from turn to turn of the event loop: what others do on the machine does not count.
  let before = process.threadCpuUsage();
  const watch = (): void => {
    const spent = process.threadCpuUsage(before);
    longestMs = Math.max(longestMs, (spent.user + spent.system) / 1000);
    turns += 1;
    before = process.threadCpuUsage();
    if (!done) setImmediate(watch);
  };
  setImmediate(watch);
  const { inputs, outputs } = await describeOnnxFile(path, 'm/1/model.onnx');
  done = true;
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect([inputs[0]?.name, outputs[0]?.name]).toEqual(['INPUT0', 'OUTPUT0']);
  expect(turns).toBeGreaterThan(5);
  expect(longestMs).toBeLessThan(30);
});
