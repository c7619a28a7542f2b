/**
 * Clients that leave and clients that grant little time, against a server process: what waits is dropped at once, also
 * while the only instance is busy, and nothing of it is left behind. `CANCEL_SEED` sets who leaves when.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { slowModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { InferStream } from './drain/infer-stream.js';
import { Draw } from './support/draw.js';
import { FIXTURE_MODELS } from './support/fixture-models.js';
import { GrpcInfer, type RawInput } from './support/grpc-infer.js';
import { startServer, type ServerProcess } from './support/server-process.js';
import { until } from './support/until.js';

const SEED = Number(process.env.CANCEL_SEED ?? 20_261_130);
const REQUESTS = 3000;
/** Iterations of the slow model that take some seconds. */
const LONG = 25_000;

const CONFIG = `backend: "onnxruntime"
max_batch_size: 4
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "ITERS" data_type: TYPE_INT64 dims: [ 1 ] } ]
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
instance_group { count: 1 }
`;
const MODELS = [
  ...FIXTURE_MODELS.filter(({ name }) => name === 'gather'),
  {
    name: 'busy',
    config: `${CONFIG}dynamic_batching {
  default_queue_policy { default_timeout_microseconds: 30000000 allow_timeout_override: true }
}`,
    versions: { '1': slowModel() },
  },
];

const slowBody = (iterations: number, parameters = {}): string =>
  JSON.stringify({
    parameters,
    inputs: [
      { name: 'INPUT0', datatype: 'FP32', shape: [1, 1], data: [1.5] },
      { name: 'ITERS', datatype: 'INT64', shape: [1, 1], data: [iterations] },
    ],
  });
const SLOW_INPUTS: readonly RawInput[] = [
  { name: 'INPUT0', datatype: 'FP32', shape: [1, 1], data: Buffer.from(Float32Array.of(1.5).buffer) },
  { name: 'ITERS', datatype: 'INT64', shape: [1, 1], data: Buffer.from(BigInt64Array.of(1n).buffer) },
];

describe('clients that leave', () => {
  let repository: TemporaryRepository;
  let server: ServerProcess;
  beforeAll(() => {
    repository = temporaryModelRepository(MODELS);
  });
  afterAll(() => repository.remove());
  beforeEach(async () => {
    server = await startServer([`--model-repository=${repository.root}`]);
  }, 60_000);
  afterEach(async () => {
    server.child.kill('SIGKILL');
    await server.stop();
  });

  const infer = (model: string, body: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`http://${server.http}/v2/models/${model}/infer`, { method: 'POST', body, ...init });

  /** Value of the metric of a model, summed over its labels beside those named. */
  async function metric(name: string, ...labels: readonly string[]): Promise<number> {
    const text = await (await fetch(`http://${server.metrics}/metrics`)).text();
    return text
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }
  const busy = (name: string, ...labels: readonly string[]): Promise<number> => metric(name, 'model="busy"', ...labels);
  const pending = (): Promise<number> => busy('nv_inference_pending_request_count');

  /** Occupies the only instance; resolves once it executes, with the answer to come. */
  async function occupy(): Promise<{ readonly answer: Promise<number> }> {
    const answer = infer('busy', slowBody(LONG)).then(({ status }) => status);
    await until('the instance is busy', 10_000, async () => (await busy('paceline_in_flight_requests')) === 1 && (await pending()) === 0);
    return { answer };
  }

  it('are not executed for, by whatever way they came', async () => {
    const { answer } = await occupy();
    const leaving = new AbortController();
    const left = infer('busy', slowBody(1), { signal: leaving.signal }).catch((error: unknown) => (error as Error).name);
    const unary = new GrpcInfer(server.grpc);
    const called = unary
      .infer('busy', 'x', SLOW_INPUTS, { signal: leaving.signal })
      .catch((error: unknown) => (error as { code: number }).code);
    const stream = new InferStream(server.grpc);
    stream.send('busy', 'y', ...SLOW_INPUTS);
    const streamed = stream.run(() => undefined);
    await until('three wait', 10_000, async () => (await pending()) === 3);
    leaving.abort();
    stream.cancel();
    expect(await left).toBe('AbortError');
    expect([await called, await streamed]).toEqual([1, 1]);
    await until('nothing waits any more', 10_000, async () => (await pending()) === 0);
    // The instance has been busy with the first one all along.
    expect(await busy('paceline_in_flight_requests')).toBe(1);
    expect(await answer).toBe(200);
    unary.close();
    await until('one execution', 10_000, async () => (await busy('nv_inference_exec_count')) === 1);
    expect(await busy('nv_inference_count')).toBe(1);
    expect(await busy('nv_inference_request_failure', 'reason="CANCELED"')).toBe(3);
  }, 60_000);

  it('or grant little time hear on time that it is over, and which limit it was', async () => {
    const { answer } = await occupy();
    const started = performance.now();
    const client = new GrpcInfer(server.grpc);
    const granted = infer('busy', slowBody(1), { headers: { 'X-Request-Timeout-Ms': '400' } });
    const asked = infer('busy', slowBody(1, { timeout: 400_000 }));
    const called = client.infer('busy', 'x', SLOW_INPUTS, { deadline: Date.now() + 400 }).catch((error: unknown) => error);
    const responses = await Promise.all([granted, asked]);
    const tookMs = performance.now() - started;
    expect(await called).toMatchObject({ code: 4 });
    const texts = await Promise.all(responses.map(async (response) => `${response.status} ${await response.text()}`));
    expect(texts[0]).toMatch(/^504 .* was not answered within 0.4 s, the limit set by the header x-request-timeout-ms/);
    expect(texts[1]).toMatch(/^504 .*Request timeout expired.*400000 us.*timeout/);
    expect(tookMs).toBeGreaterThanOrEqual(395);
    expect(tookMs).toBeLessThan(400 + 250);
    expect(await busy('paceline_in_flight_requests')).toBe(1);
    expect(await answer).toBe(200);
    client.close();
    await until('one execution', 10_000, async () => (await busy('nv_inference_exec_count')) === 1);
  }, 60_000);

  it(`at random moments leave nothing behind, and the others get their answers (seed ${SEED})`, async () => {
    const draw = new Draw(SEED);
    const client = new GrpcInfer(server.grpc);
    let answered = 0;
    let left = 0;
    const one = async (i: number): Promise<void> => {
      const index = draw.int(0, 3);
      const leaves = draw.chance(0.3);
      const leaving = new AbortController();
      const wait = draw.int(0, 12);
      if (leaves) setTimeout(() => leaving.abort(), wait);
      const input: RawInput = {
        name: 'INPUT0',
        datatype: 'INT64',
        shape: [1, 1],
        data: Buffer.from(BigInt64Array.of(BigInt(index)).buffer),
      };
      try {
        const value =
          i % 2 === 0
            ? await client
                .infer('gather', String(i), [input], { signal: leaving.signal })
                .then((answer) => answer.outputs[0]?.data.readFloatLE(0))
            : await infer('gather', JSON.stringify({ inputs: [{ ...input, data: [index] }] }), { signal: leaving.signal })
                .then((response) => response.json() as Promise<{ outputs: { data: number[] }[] }>)
                .then((answer) => answer.outputs[0]?.data[0]);
        expect(value).toBe((index + 1) * 10);
        answered += 1;
      } catch (error) {
        if (!leaves) throw error;
        left += 1;
      }
    };
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < REQUESTS) await one(next++);
    };
    await Promise.all(Array.from({ length: 64 }, worker));
    expect(answered + left).toBe(REQUESTS);
    expect(left).toBeGreaterThan(REQUESTS / 20);
    const gauges = [
      'paceline_in_flight_requests',
      'paceline_in_flight_bytes',
      'nv_inference_pending_request_count',
      'paceline_queue_requests',
      'paceline_queue_rows',
    ];
    await until('every gauge is 0', 10_000, async () =>
      (await Promise.all(gauges.map((name) => metric(name)))).every((value) => value === 0),
    );
    const [succeeded, failed, cancelled] = await Promise.all([
      metric('nv_inference_request_success', 'model="gather"'),
      metric('nv_inference_request_failure', 'model="gather"'),
      metric('nv_inference_request_failure', 'model="gather"', 'reason="CANCELED"'),
    ]);
    expect(failed).toBe(cancelled);
    expect(succeeded).toBeGreaterThanOrEqual(answered);
    expect(succeeded + cancelled).toBeLessThanOrEqual(REQUESTS);
    client.close();
  }, 60_000);
});
