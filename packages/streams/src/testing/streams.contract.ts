/**
 * What every adapter of {@link RequestQueue} and {@link ReplyChannel} promises. An adapter's test calls
 * {@link describeStreams} with a way to join two gateways and one scheduler.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ServingError, type Envelope, type ReplyFrame, type RequestRef } from '@paceline/protocol';
import type { ReplyChannel, RequestIntake, RequestQueue } from '../ports.js';

/** Two gateways and a scheduler, joined by the adapter under test. */
export interface JoinedStreams {
  /** Request queues by gateway incarnation. */
  readonly queues: ReadonlyMap<string, RequestQueue>;
  readonly replies: ReplyChannel;
  /** Resolves when everything sent so far has been delivered. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

/** Joins the listeners; the gateway incarnations are the keys of `gateways`. */
export type JoinStreams = (
  intake: RequestIntake,
  gateways: ReadonlyMap<string, (number: number, frame: ReplyFrame) => void>,
) => Promise<JoinedStreams>;

const A = 'aaaaaaaaaaaaaaaa';
const B = 'bbbbbbbbbbbbbbbb';
const TIMEOUT_US = 60_000_000;

function envelope(ref: RequestRef, data: Uint8Array): Envelope {
  return {
    ref,
    model: 'm',
    version: '1',
    clientId: 'client',
    rows: 1,
    priority: 2,
    timeoutUs: TIMEOUT_US,
    shapeKey: '4',
    inputs: [{ name: 'INPUT0', datatype: 'UINT8', shape: [1, data.length], data }],
    outputs: ['OUTPUT0'],
  };
}

export function describeStreams(name: string, join: JoinStreams): void {
  describe(`streams contract: ${name}`, () => {
    let streams: JoinedStreams;
    let seen: Envelope[];
    let cancelled: string[];
    let frames: { gateway: string; number: number; frame: ReplyFrame }[];

    beforeEach(async () => {
      seen = [];
      cancelled = [];
      frames = [];
      const listener = (gateway: string) => (number: number, frame: ReplyFrame) => void frames.push({ gateway, number, frame });
      streams = await join(
        {
          onEnvelope: (e) => void seen.push(e),
          onCancel: (ref, model, version) => void cancelled.push(`${ref.gateway}/${ref.number}/${model}/${version}`),
        },
        new Map([
          [A, listener(A)],
          [B, listener(B)],
        ]),
      );
    });
    afterEach(() => streams.close());

    test('an envelope arrives whole, and those of one gateway in order', async () => {
      for (let i = 1; i <= 50; i++) streams.queues.get(A)!.enqueue(envelope({ gateway: A, number: i }, Uint8Array.of(i, 0, 255)));
      await streams.settle();
      // What is left of a queue timeout travels, so the time on the way is taken off.
      for (const { timeoutUs } of seen) expect(timeoutUs > 0 && timeoutUs <= TIMEOUT_US).toBe(true);
      expect(seen.map((e) => ({ ...e, timeoutUs: TIMEOUT_US }))).toEqual(
        Array.from({ length: 50 }, (_, i) => envelope({ gateway: A, number: i + 1 }, Uint8Array.of(i + 1, 0, 255))),
      );
    });

    test('a cancellation names its request and follows it', async () => {
      streams.queues.get(B)!.enqueue(envelope({ gateway: B, number: 7 }, new Uint8Array(1)));
      await streams.settle();
      streams.queues.get(B)!.cancel({ gateway: B, number: 7 }, 'm', '1');
      await streams.settle();
      expect(seen.map((e) => e.ref)).toEqual([{ gateway: B, number: 7 }]);
      expect(cancelled).toEqual([`${B}/7/m/1`]);
    });

    test('what is forgotten is over, and others go their way', async () => {
      const queue = streams.queues.get(A)!;
      queue.enqueue(envelope({ gateway: A, number: 1 }, new Uint8Array(1)));
      await streams.settle();
      queue.forget({ gateway: A, number: 1 });
      queue.forget({ gateway: A, number: 1 });
      queue.enqueue(envelope({ gateway: A, number: 2 }, new Uint8Array(1)));
      await streams.settle();
      expect(seen.map(({ ref }) => ref.number)).toEqual([1, 2]);
      expect(cancelled).toEqual([]);
    });

    test('replies reach the gateway that asked, results and errors alike', async () => {
      const ok: ReplyFrame = {
        ok: true,
        index: 0,
        final: true,
        outputs: [{ name: 'OUTPUT0', datatype: 'FP32', shape: [1], data: Uint8Array.of(0, 0, 128, 63) }],
        timings: { queueNs: 1, computeInputNs: 2, computeInferNs: 3, computeOutputNs: 4, batchRows: 5 },
      };
      const refused = new ServingError('RESOURCE_EXHAUSTED', 'queue full', { reason: 'queue_full', retryAfterMs: 20 });
      streams.replies.send({ gateway: A, number: 1 }, ok);
      streams.replies.send({ gateway: B, number: 2 }, { ok: false, final: true, error: refused });
      await streams.settle();
      expect(frames.map(({ gateway, number }) => ({ gateway, number }))).toEqual([
        { gateway: A, number: 1 },
        { gateway: B, number: 2 },
      ]);
      expect(frames[0]!.frame).toEqual(ok);
      const answer = frames[1]!.frame;
      expect(
        answer.ok || {
          code: answer.error.code,
          reason: answer.error.reason,
          message: answer.error.message,
          retryAfterMs: answer.error.retryAfterMs,
        },
      ).toEqual({ code: 'RESOURCE_EXHAUSTED', reason: 'queue_full', message: 'queue full', retryAfterMs: 20 });
    });

    test('a reply for a gateway that is gone harms nobody', async () => {
      streams.replies.send(
        { gateway: 'cccccccccccccccc', number: 1 },
        { ok: false, final: true, error: new ServingError('INTERNAL', 'x') },
      );
      streams.replies.send({ gateway: A, number: 2 }, { ok: false, final: true, error: new ServingError('INTERNAL', 'y') });
      await streams.settle();
      expect(frames.map(({ number }) => number)).toEqual([2]);
    });
  });
}
