/** The service against a lane that the test plays: order, deadlines, caps, cancel, drain and statistics. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { ServingError, type InferRequest, type ReplyFrame } from '@paceline/protocol';
import { StatisticsRegistry } from '@paceline/telemetry';
import { decodeBytes } from '@paceline/tensor';
import { catalogOf, echo, fakeModel, FakeQueue, okFrame } from '../testing/fake-lane.js';
import { InferService, type InferLimits } from './infer-service.js';

const MODELS = [
  fakeModel({ name: 'plain', inputs: [['IN', 'FP32', [-1, 2]]], labels: ['cat', 'dog'] }),
  fakeModel({ name: 'ordered', inputs: [['IN', 'FP32', [-1, 2]]], preserveOrdering: true }),
  fakeModel({ name: 'half', inputs: [['IN', 'FP16', [-1, 2]]] }),
];

let clock: FakeClock;
let queue: FakeQueue;
let statistics: StatisticsRegistry;
let service: InferService;

function start(limits: Partial<InferLimits> = {}): void {
  service = new InferService({ gateway: '0123456789abcdef', catalog: catalogOf(...MODELS), queue, statistics, clock, limits });
}

beforeEach(() => {
  clock = new FakeClock();
  queue = new FakeQueue();
  statistics = new StatisticsRegistry();
  start();
});

function request(modelName: string, more: Partial<InferRequest> = {}): InferRequest {
  const data = new Uint8Array(new Float32Array([1, 2]).buffer);
  return {
    modelName,
    modelVersion: '',
    id: '',
    parameters: {},
    inputs: [{ name: 'IN', datatype: 'FP32', shape: [1, 2], data }],
    outputs: undefined,
    ...more,
  };
}

/** Sends and collects `tag` for each frame. */
function send(log: string[], tag: string, modelName = 'plain', more: Partial<InferRequest> = {}): { number: number; cancel(): void } {
  const call = service.infer(request(modelName, more), (frame) => log.push(frame.ok ? tag : `${tag}:${frame.error.code}`));
  return { number: queue.enqueued.at(-1)?.ref.number as number, cancel: () => call.cancel() };
}

const failed = (code: 'INTERNAL' | 'RESOURCE_EXHAUSTED' | 'DEADLINE_EXCEEDED'): ReplyFrame => ({
  ok: false,
  final: true,
  error: new ServingError(code, 'x'),
});
const counters = (model = 'plain'): unknown => {
  const { success, fail, failuresByReason } = statistics.forVersion(model, '1');
  return { success: success.count, fail: fail.count, ...failuresByReason };
};
const NONE = { success: 0, fail: 0, REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };

describe('envelope', () => {
  test('states what was asked, resolved and in the order of the configuration', () => {
    service.infer(request('plain', { id: 'x', parameters: { priority: 2n, timeout: 300n } }), () => undefined);
    expect(queue.enqueued[0]).toMatchObject({
      ref: { gateway: '0123456789abcdef', number: 1 },
      model: 'plain',
      version: '1',
      clientId: 'x',
      rows: 1,
      priority: 2,
      timeoutUs: 300,
      shapeKey: '',
      outputs: ['OUTPUT0'],
    });
  });

  test('what is refused never reaches the lane and is not counted as a failure', () => {
    expect(() => service.infer(request('nosuch'), () => undefined)).toThrow("unknown model: 'nosuch'");
    expect(() => service.infer(request('plain', { inputs: [] }), () => undefined)).toThrow('expected 1 inputs but got 0');
    expect(() => service.infer(request('plain', { parameters: { triton_a: true } }), () => undefined)).toThrow('reserved');
    const ranked = request('half', {
      inputs: [{ name: 'IN', datatype: 'FP16', shape: [1, 2], data: new Uint8Array(4) }],
      outputs: [{ name: 'OUTPUT0', classification: 1 }],
    });
    expect(() => service.infer(ranked, () => undefined)).toThrow("unsupported type 'FP16'");
    expect(queue.enqueued).toHaveLength(0);
    expect(service.unanswered).toBe(0);
    expect(counters()).toEqual(NONE);
  });
});

describe('replies', () => {
  test('a lane that answers inside enqueue is heard only after infer has returned', async () => {
    queue.answer = (envelope) => service.onFrame(envelope.ref.number, okFrame(echo(envelope)));
    const log: string[] = [];
    const answered = new Promise<void>((resolve) => {
      service.infer(request('plain'), () => {
        log.push('frame');
        resolve();
      });
      log.push('returned');
    });
    await answered;
    expect(log).toEqual(['returned', 'frame']);
    expect(counters()).toEqual({ ...NONE, success: 1 });
  });

  test('success is timed from admission to the final frame; frames after it are dropped', () => {
    const log: string[] = [];
    const { number } = send(log, 'a');
    clock.advance(250);
    service.onFrame(number, okFrame([], 0, false));
    clock.advance(250);
    service.onFrame(number, okFrame([], 1));
    service.onFrame(number, okFrame([], 2));
    expect(log).toEqual(['a', 'a']);
    expect(statistics.forVersion('plain', '1').success).toEqual({ count: 1, ns: 500_000 });
  });

  test('failures count by reason; a full queue is no failed request', () => {
    const log: string[] = [];
    for (const code of ['INTERNAL', 'RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED'] as const)
      service.onFrame(send(log, 'a').number, failed(code));
    expect(log).toEqual(['a:INTERNAL', 'a:RESOURCE_EXHAUSTED', 'a:DEADLINE_EXCEEDED']);
    expect(counters()).toEqual({ ...NONE, fail: 2, BACKEND: 1, REJECTED: 2 });
  });

  test('asked for classes, an output comes as strings with labels', () => {
    let frame: ReplyFrame | undefined;
    service.infer(request('plain', { outputs: [{ name: 'OUTPUT0', classification: 1 }] }), (f) => (frame = f));
    service.onFrame(1, okFrame(echo(queue.enqueued[0] as never)));
    const output = frame?.ok ? frame.outputs[0] : undefined;
    expect(output).toMatchObject({ name: 'OUTPUT0', datatype: 'BYTES', shape: [1, 1] });
    expect(decodeBytes(output?.data ?? new Uint8Array()).map((b) => Buffer.from(b).toString())).toEqual(['2.000000:1:dog']);
  });
});

describe('preserve_ordering', () => {
  test('replies leave in the order of the requests, whatever order they come in', () => {
    const log: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((tag) => send(log, tag, 'ordered'));
    service.onFrame(c?.number ?? 0, okFrame([]));
    service.onFrame(b?.number ?? 0, failed('INTERNAL'));
    expect(log).toEqual([]);
    service.onFrame(a?.number ?? 0, okFrame([]));
    expect(log).toEqual(['a', 'b:INTERNAL', 'c']);
    expect(counters('ordered')).toEqual({ ...NONE, success: 2, fail: 1, BACKEND: 1 });
  });

  test('a cancelled or expired request holds nobody back', () => {
    const log: string[] = [];
    const a = send(log, 'a', 'ordered');
    clock.advance(1_000_000);
    const b = send(log, 'b', 'ordered');
    const c = send(log, 'c', 'ordered');
    const d = send(log, 'd', 'ordered');
    service.onFrame(b.number, okFrame([]));
    service.onFrame(d.number, okFrame([]));
    a.cancel();
    expect(log).toEqual(['b']);
    clock.advance(60_000_000);
    expect(log).toEqual(['b', 'c:DEADLINE_EXCEEDED', 'd']);
    expect(queue.cancelled.map((ref) => ref.number)).toEqual([a.number, c.number]);
  });

  test('thousands of requests answered backwards come out forwards', () => {
    const log: string[] = [];
    const calls = Array.from({ length: 5000 }, (_, i) => send(log, `${i}`, 'ordered'));
    for (const call of calls.toReversed()) service.onFrame(call.number, okFrame([]));
    expect(log).toEqual(calls.map((_, i) => `${i}`));
  });
});

describe('leaving', () => {
  test('a cancelled call hears nothing more and counts once', () => {
    const log: string[] = [];
    const call = send(log, 'a');
    call.cancel();
    call.cancel();
    service.onFrame(call.number, okFrame([]));
    expect(log).toEqual([]);
    expect(queue.cancelled).toEqual([{ gateway: '0123456789abcdef', number: call.number }]);
    expect(counters()).toEqual({ ...NONE, fail: 1, CANCELED: 1 });
  });

  test('each request expires at its own time though there is one timer', () => {
    const log: string[] = [];
    send(log, 'a');
    clock.advance(20_000_000);
    send(log, 'b');
    expect(clock.armedCount).toBe(1);
    clock.advance(40_000_000);
    expect(log).toEqual(['a:DEADLINE_EXCEEDED']);
    clock.advance(19_999_999);
    expect(log).toHaveLength(1);
    clock.advance(1);
    expect(log).toEqual(['a:DEADLINE_EXCEEDED', 'b:DEADLINE_EXCEEDED']);
    expect(clock.armedCount).toBe(0);
    expect(counters()).toEqual({ ...NONE, fail: 2, OTHER: 2 });
  });
});

describe('time limits of clients', () => {
  const limited = (log: string[], tag: string, ms: number, model = 'plain'): { cancel(): void } =>
    service.infer(request(model, { id: tag }), (frame) => log.push(frame.ok ? tag : `${tag}: ${frame.error.message}`), {
      dueUs: clock.nowUs() + ms * 1000,
      limitUs: ms * 1000,
      setBy: 'the test',
    });

  test('a shorter one ends its request on time, out of order, and says whose it was', () => {
    const log: string[] = [];
    send(log, 'server');
    limited(log, 'b', 200);
    limited(log, 'a', 100);
    clock.advance(99_999);
    expect(log).toEqual([]);
    clock.advance(1);
    expect(log).toEqual(["a: [request id: a] request to model 'plain' version 1 was not answered within 0.1 s, the limit set by the test"]);
    expect(queue.cancelled.map((ref) => ref.number)).toEqual([3]);
    clock.advance(100_000);
    expect(log).toHaveLength(2);
    clock.advance(60_000_000);
    expect(log.at(-1)).toBe('server:DEADLINE_EXCEEDED');
    expect(service.unanswered).toBe(0);
  });

  test('a longer one than the server has does not lengthen it', () => {
    const log: string[] = [];
    limited(log, 'a', 120_000);
    clock.advance(60_000_000);
    expect(log).toEqual([expect.stringMatching(/within 60 s, the limit set by the server \(--request-timeout-ms\)$/)]);
  });

  test('in a model that keeps the order it does not wait for those before it', () => {
    const log: string[] = [];
    const first = send(log, 'first', 'ordered');
    limited(log, 'second', 50, 'ordered');
    const third = send(log, 'third', 'ordered');
    service.onFrame(third.number, okFrame([]));
    clock.advance(50_000);
    expect(log).toEqual([expect.stringMatching(/^second: /)]);
    service.onFrame(first.number, okFrame([]));
    expect(log.slice(1)).toEqual(['first', 'third']);
  });

  test('one that is over already is refused before the request is looked at', () => {
    expect(() => limited([], 'late', 0)).toThrow(expect.objectContaining({ code: 'DEADLINE_EXCEEDED', reason: 'request_timeout' }));
    expect(queue.enqueued).toHaveLength(0);
  });
});

describe('full, before anything is decoded', () => {
  const plain = MODELS[0] as (typeof MODELS)[number];

  test('a queue that is full by what its lane counts', () => {
    expect(() => service.precheck(plain)).not.toThrow();
    const own = statistics.forVersion('plain', '1');
    own.pendingRequests = 4095;
    expect(() => service.precheck(plain)).not.toThrow();
    own.pendingRequests = 4096;
    expect(() => service.precheck(plain)).toThrow(
      expect.objectContaining({
        message: '[request id: <id_unknown>] Exceeds maximum queue size',
        reason: 'queue_full',
        retryAfterMs: 1000,
      }),
    );
    expect(own.refusedByReason.get('queue_full')).toBe(1);
  });

  test('a model with its share of unanswered requests, which leaves others alone', () => {
    start({ maxUnansweredPerModel: 1 });
    const a = send([], 'a');
    clock.advance(8_000);
    service.onFrame(a.number, okFrame([]));
    send([], 'b');
    expect(() => service.precheck(plain)).toThrow(expect.objectContaining({ reason: 'too_many_unanswered_of_model', retryAfterMs: 1 }));
    expect(() => send([], 'c')).toThrow("1 requests to model 'plain' are unanswered");
    expect(() => send([], 'd', 'ordered')).not.toThrow();
  });

  test('a server that stops', () => {
    void service.drain();
    expect(() => service.precheck(plain)).toThrow(expect.objectContaining({ code: 'UNAVAILABLE', reason: 'draining' }));
  });
});

describe('caps and drain', () => {
  test('beyond either cap a request is refused with a time to come back, and room is made by answers', () => {
    start({ maxUnanswered: 2, maxUnansweredBytes: 20 });
    const log: string[] = [];
    const a = send(log, 'a');
    send(log, 'b');
    const refusal = expect.objectContaining({
      code: 'RESOURCE_EXHAUSTED',
      reason: 'too_many_unanswered',
      retryAfterMs: expect.any(Number),
    });
    expect(() => send(log, 'c')).toThrow(refusal);
    service.onFrame(a.number, okFrame([]));
    send(log, 'c');
    start({ maxUnansweredBytes: 15 });
    send(log, 'd');
    expect(() => send(log, 'e')).toThrow(expect.objectContaining({ reason: 'too_many_unanswered_bytes' }));
  });

  test('drain refuses what is new and waits for what is not answered', async () => {
    const log: string[] = [];
    const a = send(log, 'a');
    const b = send(log, 'b');
    const drained = service.drain().then(() => log.push('drained'));
    expect(() => send(log, 'c')).toThrow(expect.objectContaining({ code: 'UNAVAILABLE', reason: 'draining' }));
    service.onFrame(a.number, okFrame([]));
    await Promise.resolve();
    expect(log).toEqual(['a']);
    b.cancel();
    await drained;
    expect(log).toEqual(['a', 'drained']);
    expect(clock.armedCount).toBe(0);
    await service.drain();
  });
});
