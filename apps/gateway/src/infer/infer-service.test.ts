/** The service against a lane that the test plays: envelopes, replies, order, cancel and statistics. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { FakeClock } from '@paceline/clock/testing';
import { ServingError, type ReplyFrame } from '@paceline/protocol';
import type { StatisticsRegistry } from '@paceline/telemetry';
import { decodeBytes } from '@paceline/tensor';
import { echo, okFrame, type FakeQueue } from '../testing/fake-lane.js';
import { oneRow, ServiceRig } from '../testing/service-rig.js';

let rig: ServiceRig;
let clock: FakeClock;
let queue: FakeQueue;
let statistics: StatisticsRegistry;
beforeEach(() => {
  rig = new ServiceRig();
  ({ clock, queue, statistics } = rig);
});

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
    rig.service.infer(oneRow('plain', { id: 'x', parameters: { priority: 2n, timeout: 300n } }), () => undefined);
    expect(queue.enqueued[0]).toMatchObject({
      ref: { gateway: '0123456789abcdef', number: 1 },
      model: 'plain',
      version: '1',
      clientId: 'x',
      rows: 1,
      priority: 2,
      timeoutUs: 300,
      remainingUs: 60_000_000,
      shapeKey: '',
      outputs: ['OUTPUT0'],
    });
  });

  test('what is refused never reaches the lane and is not counted as a failure', () => {
    expect(() => rig.service.infer(oneRow('nosuch'), () => undefined)).toThrow("unknown model: 'nosuch'");
    expect(() => rig.service.infer(oneRow('plain', { inputs: [] }), () => undefined)).toThrow('expected 1 inputs but got 0');
    expect(() => rig.service.infer(oneRow('plain', { parameters: { triton_a: true } }), () => undefined)).toThrow('reserved');
    const ranked = oneRow('half', {
      inputs: [{ name: 'IN', datatype: 'FP16', shape: [1, 2], data: new Uint8Array(4) }],
      outputs: [{ name: 'OUTPUT0', classification: 1 }],
    });
    expect(() => rig.service.infer(ranked, () => undefined)).toThrow("unsupported type 'FP16'");
    expect(queue.enqueued).toHaveLength(0);
    expect(rig.service.unanswered).toBe(0);
    expect(counters()).toEqual(NONE);
  });
});

describe('replies', () => {
  test('a lane that answers inside enqueue is heard only after infer has returned', async () => {
    queue.answer = (envelope) => rig.service.onFrame(envelope.ref.number, okFrame(echo(envelope)));
    const log: string[] = [];
    const answered = new Promise<void>((resolve) => {
      rig.service.infer(oneRow('plain'), () => {
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
    const { number } = rig.send(log, 'a');
    clock.advance(250);
    rig.service.onFrame(number, okFrame([], 0, false));
    clock.advance(250);
    rig.service.onFrame(number, okFrame([], 1));
    rig.service.onFrame(number, okFrame([], 2));
    expect(log).toEqual(['a', 'a']);
    expect(statistics.forVersion('plain', '1').success).toEqual({ count: 1, ns: 500_000 });
  });

  test('failures count by reason; a full queue is no failed request', () => {
    const log: string[] = [];
    for (const code of ['INTERNAL', 'RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED'] as const)
      rig.service.onFrame(rig.send(log, 'a').number, failed(code));
    expect(log).toEqual(['a:INTERNAL', 'a:RESOURCE_EXHAUSTED', 'a:DEADLINE_EXCEEDED']);
    expect(counters()).toEqual({ ...NONE, fail: 2, BACKEND: 1, REJECTED: 2 });
  });

  test('asked for classes, an output comes as strings with labels', () => {
    let frame: ReplyFrame | undefined;
    rig.service.infer(oneRow('plain', { outputs: [{ name: 'OUTPUT0', classification: 1 }] }), (f) => (frame = f));
    rig.service.onFrame(1, okFrame(echo(queue.enqueued[0] as never)));
    const output = frame?.ok ? frame.outputs[0] : undefined;
    expect(output).toMatchObject({ name: 'OUTPUT0', datatype: 'BYTES', shape: [1, 1] });
    expect(decodeBytes(output?.data ?? new Uint8Array()).map((b) => Buffer.from(b).toString())).toEqual(['2.000000:1:dog']);
  });
});

describe('preserve_ordering', () => {
  test('replies leave in the order of the requests, whatever order they come in', () => {
    const log: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((tag) => rig.send(log, tag, 'ordered'));
    rig.service.onFrame(c?.number ?? 0, okFrame([]));
    rig.service.onFrame(b?.number ?? 0, failed('INTERNAL'));
    expect(log).toEqual([]);
    rig.service.onFrame(a?.number ?? 0, okFrame([]));
    expect(log).toEqual(['a', 'b:INTERNAL', 'c']);
    expect(counters('ordered')).toEqual({ ...NONE, success: 2, fail: 1, BACKEND: 1 });
  });

  test('a cancelled or expired request holds nobody back', () => {
    const log: string[] = [];
    const a = rig.send(log, 'a', 'ordered');
    clock.advance(1_000_000);
    const b = rig.send(log, 'b', 'ordered');
    const c = rig.send(log, 'c', 'ordered');
    const d = rig.send(log, 'd', 'ordered');
    rig.service.onFrame(b.number, okFrame([]));
    rig.service.onFrame(d.number, okFrame([]));
    a.cancel();
    expect(log).toEqual(['b']);
    clock.advance(60_000_000);
    expect(log).toEqual(['b', 'c:DEADLINE_EXCEEDED', 'd']);
    expect(queue.cancelled.map((ref) => ref.number)).toEqual([a.number, c.number]);
  });

  test('thousands of requests answered backwards come out forwards', () => {
    const log: string[] = [];
    const calls = Array.from({ length: 5000 }, (_, i) => rig.send(log, `${i}`, 'ordered'));
    for (const call of calls.toReversed()) rig.service.onFrame(call.number, okFrame([]));
    expect(log).toEqual(calls.map((_, i) => `${i}`));
  });
});

describe('leaving', () => {
  test('a cancelled call hears nothing more and counts once', () => {
    const log: string[] = [];
    const call = rig.send(log, 'a');
    call.cancel();
    call.cancel();
    rig.service.onFrame(call.number, okFrame([]));
    expect(log).toEqual([]);
    expect(queue.cancelled).toEqual([{ gateway: '0123456789abcdef', number: call.number }]);
    expect(counters()).toEqual({ ...NONE, fail: 1, CANCELED: 1 });
  });

  test('each request expires at its own time though there is one timer', () => {
    const log: string[] = [];
    rig.send(log, 'a');
    clock.advance(20_000_000);
    rig.send(log, 'b');
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

  test('a drain leaves no timer behind, also when there was nothing to wait for', async () => {
    const { number } = rig.send([], 'a');
    rig.service.onFrame(number, okFrame([]));
    expect(clock.armedCount).toBe(1);
    await rig.service.drain();
    expect(clock.armedCount).toBe(0);
  });
});
