/** The span of a request at its gateway: one for each, ended once, whatever becomes of the request. */
import { beforeEach, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { ServingError, type ReplyFrame } from '@paceline/protocol';
import { StatisticsRegistry } from '@paceline/telemetry';
import { RecordedTracing } from '@paceline/telemetry/testing';
import { catalogOf, FakeQueue, okFrame } from '../testing/fake-lane.js';
import { oneRow, SERVICE_MODELS } from '../testing/service-rig.js';
import { InferService } from './infer-service.js';

const CLIENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

let clock: FakeClock;
let queue: FakeQueue;
let tracing: RecordedTracing;
let service: InferService;

beforeEach(() => {
  clock = new FakeClock();
  queue = new FakeQueue();
  tracing = new RecordedTracing();
  const catalog = catalogOf(...SERVICE_MODELS);
  service = new InferService({ gateway: '0123456789abcdef', catalog, queue, statistics: new StatisticsRegistry(), clock, tracing });
});

const send = () => service.infer(oneRow('plain', { id: 'mine', traceParent: CLIENT }), () => undefined);
const failed = (error: ServingError): ReplyFrame => ({ ok: false, final: true, error });

test('an answered request: under the span of its client, over that of its lane, from arrival to answer', () => {
  clock.advance(100);
  const { number } = send();
  expect(queue.enqueued[0]).toMatchObject({ traceParent: 'span-1' });
  clock.advance(250);
  const timings = { queueNs: 1000, computeInputNs: 2000, computeInferNs: 3000, computeOutputNs: 4000, batchRows: 5 };
  service.onFrame(number, { ok: true, index: 0, final: true, outputs: [], timings });
  expect(tracing.summary).toEqual([`paceline.infer under ${CLIENT}: ok`]);
  expect(tracing.spans[0]).toMatchObject({
    startUs: 100,
    attributes: { 'paceline.model': 'plain', 'paceline.client_id': 'mine' },
    end: {
      endUs: 350,
      attributes: {
        'paceline.request': number,
        'paceline.version': '1',
        'paceline.rows': 1,
        'paceline.queue_us': 1,
        'paceline.compute_infer_us': 3,
        'paceline.batch_rows': 5,
      },
    },
  });
});

test('refused, failed, late, abandoned: each ends its span once, with the reason', () => {
  expect(() => service.infer(oneRow('nobody'), () => undefined)).toThrow();
  expect(() => service.infer(oneRow('plain', { inputs: [] }), () => undefined)).toThrow();
  service.onFrame(send().number, failed(new ServingError('INTERNAL', 'it broke', { reason: 'model_failed' })));
  const left = send();
  left.cancel();
  left.cancel();
  service.onFrame(left.number, okFrame([]));
  send();
  clock.advance(60_000_000);
  const reasons = tracing.spans.map(({ end }) => end?.error?.reason);
  expect(reasons).toEqual(['not_found', expect.any(String), 'model_failed', 'client_left', 'request_timeout']);
});

test('a queue that throws ends the span, too', () => {
  queue.answer = () => {
    throw new Error('a bug');
  };
  expect(() => send()).toThrow('a bug');
  expect(tracing.summary).toEqual([`paceline.infer under ${CLIENT}: internal`]);
});
