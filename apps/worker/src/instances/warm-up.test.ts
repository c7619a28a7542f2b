// Warmup on real hosts: every instance runs every sample before it is ready, also when it comes back, and its answers count.
import { afterEach, expect, jest, test } from '@jest/globals';
import { gatherModel, onnxModel, scaleModel } from '@paceline/testkit';
import type { LoadSpec, WarmupSample } from '@paceline/worker-rpc';
import { fp32, int64 } from '../testing/samples.js';
import { WorkerFixture, type ModelOptions } from '../testing/worker-fixture.js';

// Processes are started and killed; a busy machine may take its time.
jest.setTimeout(60_000);

let fixture: WorkerFixture;
afterEach(() => fixture.close());

const GATHER: ModelOptions = { onnx: gatherModel(), inputs: [['INPUT0', 'INT64', [-1, 1]]], outputs: [['OUTPUT0', 'FP32', [-1, 1]]] };
const SCALE: ModelOptions = {
  onnx: scaleModel({ dims: [2], factor: 3 }),
  inputs: [['INPUT0', 'FP32', [-1, 2]]],
  outputs: [['OUTPUT0', 'FP32', [-1, 2]]],
};

function specOf(options: ModelOptions, ...warmup: readonly WarmupSample[]): LoadSpec {
  fixture = new WorkerFixture();
  return { ...fixture.spec('m', options), warmup };
}

const good = { name: 'good', count: 3, rows: 2, inputs: [fp32('INPUT0', [2, 2], [1, 2, 3, 4])] };

test('every instance runs every sample as often as it says, and the report counts it', async () => {
  const spec = specOf({ ...SCALE, instances: 2 }, good, { ...good, name: 'again', count: 1 });
  const report = await fixture.worker.load(spec);
  expect(report.warmup).toEqual({ samples: 2, runs: 8, durationMs: expect.any(Number) });
  expect(report.warmup?.durationMs).toBeGreaterThan(0);
  expect((await fixture.worker.statistics()).copiedInBytes).toBe(2 * 4 * 16);
  const [output] = await fixture.infer(spec, [fp32('INPUT0', [1, 2], [5, 6])], ['OUTPUT0']);
  expect(output?.data).toEqual(fp32('', [], [15, 18]).data);
});

test('without samples there is nothing to report', async () => {
  const spec = specOf(SCALE);
  expect((await fixture.worker.load(spec)).warmup).toBeUndefined();
});

test('an instance that comes back warms up again before it is ready', async () => {
  const spec = specOf(SCALE, good);
  await fixture.worker.load(spec);
  const before = (await fixture.worker.statistics()).copiedInBytes;
  process.kill(fixture.worker.hostPids()[0]!, 'SIGKILL');
  await fixture.listener.event('ready');
  expect((await fixture.worker.statistics()).copiedInBytes - before).toBe(3 * 16);
});

test('the first sample that fails fails the load with its name and the reason of the runtime, and nothing is left', async () => {
  const sample = { name: 'out of range', count: 1, rows: 1, inputs: [int64('INPUT0', [1, 1], [99n])] };
  const spec = specOf(GATHER, { ...sample, name: 'fine', inputs: [int64('INPUT0', [1, 1], [0n])] }, sample);
  await expect(fixture.worker.load(spec)).rejects.toThrow(
    /^failed to run warmup sample 'out of range': .*indices element out of data bounds/s,
  );
  expect(fixture.worker.hostPids()).toEqual([]);
});

test('an answer that is not finite fails the load, and says which element', async () => {
  const value = { name: 'INPUT0', datatype: 'FP32', shape: ['b', 2] } as const;
  const onnx = onnxModel({
    nodes: [{ op: 'Reciprocal', inputs: ['INPUT0'], outputs: ['OUTPUT0'] }],
    inputs: [value],
    outputs: [{ ...value, name: 'OUTPUT0' }],
  });
  const spec = specOf({ ...SCALE, onnx }, { name: 'zero', count: 1, rows: 1, inputs: [fp32('INPUT0', [1, 2], [1, 0])] });
  await expect(fixture.worker.load(spec)).rejects.toThrow(
    "failed to run warmup sample 'zero': element 1 of output 'OUTPUT0' is not a finite number",
  );
});

test('an answer of another shape than the configuration says fails the load', async () => {
  const spec = specOf({ ...SCALE, outputs: [['OUTPUT0', 'FP32', [-1, 5]]] }, good);
  await expect(fixture.worker.load(spec)).rejects.toThrow(
    "failed to run warmup sample 'good': output 'OUTPUT0' has shape [2,2], the model configuration says [2,5]",
  );
});
