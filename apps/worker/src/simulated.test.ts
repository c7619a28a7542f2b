/** The simulated accelerator in real hosts: what it answers, how long it takes, how it fails, what it leaves out. */
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { create } from '@bufbuild/protobuf';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import type { DataType } from '@paceline/tensor';
import type { BatchCompletion, LoadSpec } from '@paceline/worker-rpc';
import { bytes, fp32, int64 } from './testing/samples.js';
import { WorkerFixture } from './testing/worker-fixture.js';

jest.setTimeout(30_000);

type Tensors = readonly (readonly [name: string, datatype: DataType, shape: readonly number[]])[];
const FP32: Tensors = [['IN', 'FP32', [-1, 2]]];
const OUT: Tensors = [['OUT', 'FP32', [-1, 2]]];

let fixture: WorkerFixture;
beforeEach(() => {
  fixture = new WorkerFixture({ executeLimitMs: 1500, firstRunLimitMs: 1500, memoryCheckMs: 20 });
});
afterEach(() => fixture.close());

interface Simulated {
  readonly inputs?: Tensors;
  readonly outputs?: Tensors;
  readonly maxBatchSize?: number;
  readonly count?: number;
}

async function load(parameters: Readonly<Record<string, string>>, options: Simulated = {}): Promise<LoadSpec> {
  const { inputs = FP32, outputs = OUT, maxBatchSize = 8, count = 1 } = options;
  const tensor = ([name, datatype, shape]: Tensors[number]) => ({ name, datatype, shape, optional: false });
  const config = create(ModelConfigSchema, {
    name: 'sim',
    backend: 'simulated',
    maxBatchSize,
    instanceGroup: [{ name: 'sim_0', count, kind: 2 }],
    parameters: Object.fromEntries(Object.entries(parameters).map(([k, v]) => [`simulated_${k}`, { stringValue: v }])),
  });
  const spec: LoadSpec = {
    model: 'sim',
    version: '1',
    generation: 1,
    config,
    modelPath: '',
    inputs: inputs.map(tensor),
    outputs: outputs.map(tensor),
  };
  await fixture.worker.load(spec);
  return spec;
}

const one = () => fixture.member([fp32('IN', [1, 2], [1, 2])], ['OUT']);

function sequence(spec: LoadSpec, runs: number): Promise<BatchCompletion[]> {
  return Array.from({ length: runs }).reduce<Promise<BatchCompletion[]>>(
    async (before) => [...(await before), await fixture.run(spec, [one()])],
    Promise.resolve([]),
  );
}

describe('answers', () => {
  test('outputs repeat the input of their type and size, each its own, and are zero where there is none', async () => {
    const inputs: Tensors = [
      ['A', 'FP32', [-1, 4]],
      ['B', 'FP32', [-1, 2, 2]],
      ['TEXT', 'BYTES', [-1, 2]],
    ];
    const outputs: Tensors = [
      ['A2', 'FP32', [-1, 4]],
      ['B2', 'FP32', [-1, 4]],
      ['TEXT2', 'BYTES', [-1, 2]],
      ['ZERO', 'INT64', [-1, 3]],
      ['EMPTY', 'BYTES', [-1, 1]],
    ];
    const spec = await load({}, { inputs, outputs });
    const a = fp32('A', [2, 4], [1, 2, 3, 4, 5, 6, 7, 8]);
    const b = fp32('B', [2, 2, 2], [9, 10, 11, 12, 13, 14, 15, 16]);
    const text = bytes('TEXT', [2, 2], ['a', new Uint8Array([0, 255]), '', 'dd']);
    const names = outputs.map(([name]) => name);
    const answer = await fixture.infer(spec, [a, b, text], names, 2);
    const plain = answer.map(({ name, datatype, shape, data }) => ({ name, datatype, shape, data: [...data] }));
    expect(plain).toEqual([
      { name: 'A2', datatype: 'FP32', shape: [2, 4], data: [...a.data] },
      { name: 'B2', datatype: 'FP32', shape: [2, 4], data: [...b.data] },
      { name: 'TEXT2', datatype: 'BYTES', shape: [2, 2], data: [...text.data] },
      { name: 'ZERO', datatype: 'INT64', shape: [2, 3], data: [...int64('', [2, 3], [0n, 0n, 0n, 0n, 0n, 0n]).data] },
      { name: 'EMPTY', datatype: 'BYTES', shape: [2, 1], data: new Array<number>(8).fill(0) },
    ]);
  });

  test('members of a batch get their own rows, also above what goes through the socket', async () => {
    const spec = await load({}, { inputs: [['IN', 'FP32', [-1, -1]]], outputs: [['OUT', 'FP32', [-1, -1]]] });
    const values = [1, 2, 3].map((value) => new Float32Array(50_000).fill(value));
    const members = values.map((v) => fixture.member([fp32('IN', [1, v.length], v)], ['OUT']));
    expect((await fixture.run(spec, members)).outcome).toBe('ok');
    members.forEach(({ ref }, i) => {
      const { shape, data } = fixture.replies.only(ref.number).outputs[0]!;
      expect(shape).toEqual([1, 50_000]);
      expect(Buffer.compare(data, new Uint8Array(values[i]!.buffer))).toBe(0);
    });
  });

  test('a model that does not batch', async () => {
    const spec = await load({}, { inputs: [['IN', 'FP32', [2]]], outputs: [['OUT', 'FP32', [2]]], maxBatchSize: 0 });
    const [out] = await fixture.infer(spec, [fp32('IN', [2], [5, 6])], ['OUT']);
    expect(out).toMatchObject({ shape: [2] });
    expect([...out!.data]).toEqual([...fp32('', [2], [5, 6]).data]);
  });

  test('bytes that do not make the tensor are refused', async () => {
    const spec = await load({});
    const short = { name: 'IN', datatype: 'FP32' as const, shape: [1, 2], data: new Uint8Array(4) };
    await expect(fixture.infer(spec, [short], ['OUT'])).rejects.toThrow("expected 8 bytes for input 'IN', got 4");
  });
});

describe('time', () => {
  const inferMs = ({ computeInferNs }: BatchCompletion): number => computeInferNs / 1e6;

  test('alpha and beta times the rows, fractions included, never less', async () => {
    const spec = await load({ alpha_ms: '10.5', beta_ms: '2.25' });
    for (const [rows, expected] of [
      [1, 12.75],
      [4, 19.5],
    ] as const) {
      const members = Array.from({ length: rows }, one);
      const took: number[] = [];
      for (let i = 0; i < 5; i++) took.push(inferMs(await fixture.run(spec, members)));
      for (const ms of took) expect(ms).toBeGreaterThanOrEqual(expected);
      // On a machine that others use some runs are late; the best of five is not by much.
      expect(Math.min(...took)).toBeLessThan(expected + 4);
    }
  });

  test('jitter spreads around that, and the same seed spreads the same way', async () => {
    const times: number[][] = [];
    for (let i = 0; i < 2; i++) {
      const spec = await load({ alpha_ms: '20', jitter: '0.5', seed: '7' });
      times.push((await sequence(spec, 8)).map((c) => inferMs(c)));
      await fixture.worker.unload('sim', '1', 1);
    }
    const [first = [], second = []] = times;
    for (const ms of [...first, ...second]) expect(ms).toBeGreaterThan(9.9);
    expect(Math.max(...first) - Math.min(...first)).toBeGreaterThan(8);
    const differences = first.map((ms, i) => Math.abs(ms - second[i]!)).sort((a, b) => a - b);
    expect(differences[3]!).toBeLessThan(4);
  });

  test('two instances are two accelerators: they run at the same time', async () => {
    const spec = await load({ alpha_ms: '150' }, { count: 2 });
    expect(new Set(fixture.worker.hostPids()).size).toBe(2);
    const begun = performance.now();
    await Promise.all([fixture.run(spec, [one()], 'sim_0_0'), fixture.run(spec, [one()], 'sim_0_1')]);
    expect(performance.now() - begun).toBeLessThan(290);
  });
});

describe('faults', () => {
  test('failures are model errors of about the wanted share, the same for a seed', async () => {
    const spec = await load({ failure_rate: '0.5', seed: '3' });
    const runs = await sequence(spec, 40);
    const failed = runs.filter(({ outcome }) => outcome === 'failed');
    expect(failed.length).toBeGreaterThan(8);
    expect(failed.length).toBeLessThan(32);
    expect(failed[0]!.error).toMatchObject({ code: 'INTERNAL', reason: 'model_failed' });
    await fixture.worker.unload('sim', '1', 1);
    const again = await sequence(await load({ failure_rate: '0.5', seed: '3' }), 40);
    expect(again.map(({ outcome }) => outcome)).toEqual(runs.map(({ outcome }) => outcome));
  });

  test('a crash takes the host down while it runs, and the instance comes back with other draws', async () => {
    const spec = await load({ crash_rate: '1' });
    const [pid] = fixture.worker.hostPids();
    const lost = await fixture.run(spec, [one()]);
    expect(lost).toMatchObject({ outcome: 'lost', started: true });
    expect(fixture.worker.hostPids()).not.toContain(pid);
  });

  test('a hang lasts until the watchdog ends it', async () => {
    const spec = await load({ hang_rate: '1' });
    const begun = performance.now();
    const lost = await fixture.run(spec, [one()]);
    expect(lost).toMatchObject({ outcome: 'lost', started: true });
    expect(performance.now() - begun).toBeGreaterThan(1400);
  });
});

test('its host never loads ONNX Runtime, and the memory of the device is reported, not taken', async () => {
  await load({ memory_mb: '2048' });
  const [pid] = fixture.worker.hostPids();
  expect(readFileSync(`/proc/${pid}/maps`, 'utf8')).not.toContain('onnxruntime');
  const residentBytes = 1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  expect(residentBytes).toBeLessThan(90e6);
  let reported = [...fixture.worker.instanceMemory()];
  while (reported.length === 0) {
    await new Promise((resolve) => setImmediate(resolve));
    reported = [...fixture.worker.instanceMemory()];
  }
  expect(reported[0]).toMatchObject({ model: 'sim', instance: 'sim_0_0' });
  expect(reported[0]!.residentBytes).toBeGreaterThan(2048 * 1024 * 1024);
  expect(reported[0]!.residentBytes).toBeLessThan(2048 * 1024 * 1024 + 90e6);
});
