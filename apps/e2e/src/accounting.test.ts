/**
 * A server counts what it did: after a mixed load of good, bad, refused, late and abandoned requests over both protocols,
 * and in the middle of it, metrics and statistics add up, agree with what the clients saw, and with the access log.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { status as grpcStatus } from '@grpc/grpc-js';
import { addSubModel, slowModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { GrpcInfer } from './support/grpc-infer.js';
import { Scrape } from './support/scrape.js';
import { startServer, type ServerProcess } from './support/server-process.js';
import { until } from './support/until.js';

const VECTOR = (name: string): string => `{ name: "${name}" data_type: TYPE_INT32 dims: [ 16 ] }`;
const ADD_SUB = `backend: "onnxruntime"
max_batch_size: 8
input [ ${VECTOR('INPUT0')}, ${VECTOR('INPUT1')} ]
output [ ${VECTOR('OUTPUT0')}, ${VECTOR('OUTPUT1')} ]
dynamic_batching { max_queue_delay_microseconds: 2000 }
metric_tags [ { key: "team" value: "blue" } ]`;
/** One at a time, and a short queue: it is easily full. */
const SLOW = `backend: "onnxruntime"
max_batch_size: 4
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "ITERS" data_type: TYPE_INT64 dims: [ 1 ] } ]
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { preferred_batch_size: [ 1 ] default_queue_policy { max_queue_size: 3 allow_timeout_override: true } }`;
const MODELS = ['add_sub', 'slow'] as const;
/** Iterations of the slow model: about a tenth of a second, and hardly anything. */
const LONG = 20_000;
const SHORT = 10;

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

interface Outcome {
  readonly status: number;
  readonly body: string;
}

describe('what a server counts', () => {
  let folder: string;
  let repository: TemporaryRepository;
  let server: ServerProcess;
  let grpc: GrpcInfer;
  const outcomes: Outcome[] = [];
  let abandoned = 0;
  let grpcGood = 0;
  let grpcBad = 0;

  const accessLog = (): string => join(folder, 'access.log');
  const scrape = (): Promise<Scrape> => Scrape.of(server.metrics);
  const url = (model: string): string => `http://${server.http}/v2/models/${model}/infer`;

  async function post(model: string, body: string, more: Readonly<Record<string, string>> = {}): Promise<Outcome> {
    const headers = { 'accept-encoding': 'identity', ...more };
    const response = await fetch(url(model), { method: 'POST', body, headers });
    const outcome = { status: response.status, body: await response.text() };
    outcomes.push(outcome);
    return outcome;
  }

  const addSub = (rows: number, id = ''): string => {
    const input = (name: string) => ({ name, datatype: 'INT32', shape: [rows, 16], data: new Array<number>(rows * 16).fill(1) });
    return JSON.stringify({ id, inputs: [input('INPUT0'), input('INPUT1')] });
  };
  const slow = (iterations: number, parameters: Record<string, unknown> = {}): string =>
    JSON.stringify({
      parameters,
      inputs: [
        { name: 'INPUT0', datatype: 'FP32', shape: [1, 1], data: [1] },
        { name: 'ITERS', datatype: 'INT64', shape: [1, 1], data: [iterations] },
      ],
    });

  async function abandon(model: string, body: string): Promise<void> {
    const controller = new AbortController();
    const inFlight = (await scrape()).value('paceline_in_flight_requests', { model });
    const answer = fetch(url(model), { method: 'POST', body, signal: controller.signal }).then(
      () => 'answered',
      () => 'aborted',
    );
    await until(
      'the request to be in flight',
      5000,
      async () => (await scrape()).value('paceline_in_flight_requests', { model }) > inFlight,
    );
    controller.abort();
    expect(await answer).toBe('aborted');
    abandoned += 1;
  }

  async function overGrpc(model: string, good: boolean): Promise<void> {
    const data = Buffer.alloc(good ? 64 : 60);
    const inputs = ['INPUT0', 'INPUT1'].map((name) => ({ name, datatype: 'INT32' as const, shape: [1, 16], data }));
    try {
      await grpc.infer(model, 'g', inputs);
      grpcGood += 1;
    } catch {
      grpcBad += 1;
    }
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'paceline-accounting-'));
    repository = temporaryModelRepository([
      { name: 'add_sub', config: ADD_SUB, versions: { '1': addSubModel({ datatype: 'INT32', dims: [16] }) } },
      { name: 'slow', config: SLOW, versions: { '1': slowModel() } },
    ]);
    server = await startServer([
      `--model-repository=${repository.root}`,
      `--access-log=${accessLog()}`,
      '--model-control-mode=explicit',
      '--load-model=*',
      '--metrics-config=summary_latencies=true',
      '--http-max-input-size=10000',
    ]);
    grpc = new GrpcInfer(server.grpc);
  }, 60_000);
  afterAll(async () => {
    grpc.close();
    await server.stop('SIGKILL');
    repository.remove();
    rmSync(folder, { recursive: true });
  });

  it('adds up in the middle of a mixed load and after it', async () => {
    const load = [
      ...Array.from({ length: 120 }, (_, i) => post('add_sub', addSub(1 + (i % 4), `a-${i}`))),
      ...Array.from({ length: 20 }, () => post('add_sub', addSub(9))),
      ...Array.from({ length: 10 }, () => post('add_sub', '{"inputs": [')),
      ...Array.from({ length: 5 }, () => post('add_sub', addSub(8).padEnd(10_001))),
      ...Array.from({ length: 10 }, () => post('no_such_model', addSub(1))),
      ...Array.from({ length: 30 }, (_, i) => overGrpc('add_sub', i % 3 > 0)),
      ...Array.from({ length: 12 }, () => post('slow', slow(LONG))),
      post('slow', slow(SHORT), { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` }),
    ];
    const during = await scrape();
    for (const model of MODELS) expect(during.balance(model)).toBe(0);
    await Promise.all(load);
    // One runs; one behind it whose time in the queue is over before its turn; one whose client leaves.
    const running = post('slow', slow(LONG));
    await until('it to run', 5000, async () => (await scrape()).value('paceline_in_flight_requests', { model: 'slow' }) === 1);
    await Promise.all([abandon('slow', slow(LONG)), post('slow', slow(SHORT, { timeout: 1000 })), running]);
    await until('nothing in flight', 10_000, async () => (await scrape()).sum('paceline_in_flight_requests') === 0);

    const after = await scrape();
    expect(outcomes.map(({ status }) => status).filter((status) => status >= 500 && status !== 504)).toEqual([]);
    for (const model of MODELS) {
      const of = (name: string, more: Record<string, string> = {}): number => after.sum(name, { model, ...more });
      expect(after.balance(model)).toBe(0);
      expect(of('paceline_batch_release_total')).toBe(of('nv_inference_exec_count'));
      expect(of('paceline_batch_size_count')).toBe(of('nv_inference_exec_count'));
      expect(of('paceline_batch_size_sum')).toBe(of('nv_inference_count'));
      for (const stage of ['request', 'queue', 'compute_input', 'compute_infer', 'compute_output']) {
        expect([stage, of(`paceline_${stage}_duration_seconds_count`)]).toEqual([stage, of('nv_inference_request_success')]);
        expect([stage, of(`nv_inference_${stage}_summary_us_count`)]).toEqual([stage, of('nv_inference_request_success')]);
        const us = of(`nv_inference_${stage}_duration_us`);
        expect(Math.abs(of(`paceline_${stage}_duration_seconds_sum`) * 1e6 - us)).toBeLessThan(1);
        expect(Math.abs(of(`nv_inference_${stage}_summary_us_sum`) - us)).toBeLessThan(1);
      }
      // The stages of a request lie within it.
      const parts = ['queue', 'compute_input', 'compute_infer', 'compute_output'].map((stage) => of(`nv_inference_${stage}_duration_us`));
      expect(parts.reduce((a, b) => a + b)).toBeLessThanOrEqual(of('nv_inference_request_duration_us'));
      expect(of('nv_inference_request_failure')).toBe(
        of('paceline_failed_requests_total') + of('paceline_refused_requests_total', { reason: 'queue_full' }),
      );
      for (const gauge of [
        'paceline_in_flight_bytes',
        'paceline_queue_requests',
        'paceline_queue_rows',
        'nv_inference_pending_request_count',
      ])
        expect([gauge, of(gauge)]).toEqual([gauge, 0]);
    }
  }, 60_000);

  it('agrees with what the clients saw', async () => {
    const now = await scrape();
    const seen = (status: number): number => outcomes.filter((outcome) => outcome.status === status).length;
    expect([grpcGood, grpcBad]).toEqual([20, 10]);
    expect(now.sum('nv_inference_request_success')).toBe(seen(200) + grpcGood);
    expect(now.sum('nv_inference_request_failure', { reason: 'CANCELED' })).toBe(abandoned);
    expect(now.sum('paceline_failed_requests_total', { reason: 'client_left' })).toBe(abandoned);
    expect(now.sum('paceline_failed_requests_total', { reason: 'queue_timeout' })).toBe(seen(504));
    expect(now.sum('paceline_refused_requests_total', { reason: 'queue_full' })).toBe(seen(429));
    expect(seen(429)).toBeGreaterThan(0);
    expect(seen(504)).toBe(1);
    expect(now.sum('paceline_refused_requests_total', { model: 'add_sub' })).toBe(20 + 10 + grpcBad);
    expect(now.sum('paceline_refused_requests_total', { model: '', reason: 'unknown_model' })).toBe(10);
    expect(now.sum('paceline_refused_requests_total', { model: '', reason: 'body_too_large' })).toBe(seen(413));
    expect(now.sum('paceline_received_requests_total')).toBe(outcomes.length + abandoned + grpcGood + grpcBad);
    expect(now.value('nv_inference_count', { model: 'add_sub', _team: 'blue' })).toBe(300 + grpcGood);
  });

  it('agrees with the statistics of both protocols’ control routes', async () => {
    interface Stats {
      readonly model_stats: readonly {
        readonly name: string;
        readonly last_inference: number;
        readonly inference_count: number;
        readonly execution_count: number;
        readonly inference_stats: Readonly<Record<string, { readonly count: number; readonly ns: number }>>;
        readonly batch_stats: readonly {
          readonly batch_size: number;
          readonly compute_infer: { readonly count: number; readonly ns: number };
        }[];
      }[];
    }
    const { model_stats } = (await (await fetch(`http://${server.http}/v2/models/stats`)).json()) as Stats;
    const now = await scrape();
    expect(model_stats.map(({ name }) => name)).toEqual([...MODELS]);
    for (const { name: model, inference_stats: stats, batch_stats, ...rest } of model_stats) {
      const success = now.sum('nv_inference_request_success', { model });
      for (const stage of ['success', 'queue', 'compute_input', 'compute_infer', 'compute_output'])
        expect([stage, stats[stage]!.count]).toEqual([stage, success]);
      expect(stats['fail']!.count).toBe(now.sum('paceline_failed_requests_total', { model }));
      expect(rest.inference_count).toBe(now.sum('nv_inference_count', { model }));
      expect(rest.execution_count).toBe(now.sum('nv_inference_exec_count', { model }));
      expect(batch_stats.reduce((rows, b) => rows + b.batch_size * b.compute_infer.count, 0)).toBe(rest.inference_count);
      expect(batch_stats.reduce((count, b) => count + b.compute_infer.count, 0)).toBe(rest.execution_count);
      expect(Math.round(stats['success']!.ns / 1000)).toBe(now.sum('nv_inference_request_duration_us', { model }));
      expect(rest.last_inference).toBeGreaterThan(Date.now() - 60_000);
      expect(rest.last_inference).toBeLessThanOrEqual(Date.now());
    }
  });

  it('has a line in the access log for each request', async () => {
    type Line = Readonly<Record<string, unknown>>;
    const total = outcomes.length + abandoned + grpcGood + grpcBad;
    const read = (): Line[] =>
      readFileSync(accessLog(), 'utf8')
        .split('\n')
        .filter((line) => line.endsWith('}'))
        .map((line) => JSON.parse(line) as Line);
    await until('every line to be written', 5000, () => read().length >= total);
    const lines = read();
    expect(lines).toHaveLength(total);
    const count = (match: Line): number =>
      lines.filter((line) => Object.entries(match).every(([key, value]) => line[key] === value)).length;
    expect(count({ protocol: 'grpc', status: grpcStatus.OK })).toBe(grpcGood);
    expect(count({ protocol: 'grpc', status: grpcStatus.INVALID_ARGUMENT })).toBe(grpcBad);
    expect(count({ protocol: 'http', status: 499, reason: 'client_left' })).toBe(abandoned);
    for (const status of [200, 400, 404, 413, 429, 504])
      expect([status, count({ protocol: 'http', status })]).toEqual([status, outcomes.filter((o) => o.status === status).length]);
    expect(lines.find((line) => line['trace_id'] === TRACE)).toMatchObject({ model: 'slow', parent_id: '00f067aa0ba902b7' });
    const good = lines.find((line) => line['id'] === 'a-2')!;
    expect(good).toMatchObject({ model: 'add_sub', version: '1', status: 200, rows: 3, bytes_in: Buffer.byteLength(addSub(3, 'a-2')) });
    expect(good['bytes_out']).toBe(Buffer.byteLength(outcomes.find(({ body }) => body.includes('"a-2"'))!.body));
    const stages = ['queue_us', 'compute_input_us', 'compute_infer_us', 'compute_output_us'].map((stage) => good[stage] as number);
    expect(stages.reduce((a, b) => a + b)).toBeLessThanOrEqual((good['total_us'] as number) + stages.length);
    expect(new Set(lines.map((line) => line['request']).filter((number) => number !== undefined)).size).toBe(
      lines.filter((line) => line['request'] !== undefined).length,
    );
  });

  it('tells a client where the time went, when it asks', async () => {
    const answer = JSON.parse((await post('slow', slow(LONG, { paceline_timings: true }))).body) as {
      readonly parameters: Readonly<Record<string, number>>;
    };
    expect(Object.keys(answer.parameters)).toEqual(['queue_us', 'compute_input_us', 'compute_infer_us', 'compute_output_us', 'batch_size']);
    expect(answer.parameters['compute_infer_us']).toBeGreaterThan(1000);
    expect(answer.parameters['batch_size']).toBe(1);
    expect(JSON.parse((await post('slow', slow(SHORT))).body)).not.toHaveProperty('parameters');
    expect(await post('slow', slow(SHORT, { paceline_timings: 1 }))).toMatchObject({
      status: 400,
      body: expect.stringContaining("'paceline_timings'"),
    });
  });

  it('forgets a model that is unloaded', async () => {
    await fetch(`http://${server.http}/v2/repository/models/slow/unload`, { method: 'POST' });
    await until('its series to vanish', 10_000, async () => !(await scrape()).text.includes('model="slow"'));
    expect((await scrape()).sum('nv_inference_request_success', { model: 'add_sub' })).toBeGreaterThan(0);
  });
});
