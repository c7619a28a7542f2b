/** Arrivals and the batches they must make: the documented behaviour of Triton's dynamic batcher, and ours beyond it. */
import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { policy, PLAIN_QUEUE } from './testing/policies.js';
import { simulate, type SimArrival } from './testing/simulate.js';

interface Trace {
  readonly name: string;
  readonly batching?: boolean;
  readonly maxRows?: number;
  readonly preferred?: number[];
  readonly delayUs?: number;
  readonly levels?: number;
  readonly defaultLevel?: number;
  readonly timeoutUs?: number;
  readonly action?: 'REJECT' | 'DELAY';
  readonly override?: boolean;
  readonly maxQueueSize?: number;
  readonly instances?: number;
  readonly arrivals: SimArrival[];
  readonly executionUs: number;
  /** [start of execution, members, reason] */
  readonly batches: [number, number[], string][];
  readonly expired?: [number, number][];
  readonly shed?: number[];
  readonly cancelled?: number[];
}

const traces = JSON.parse(readFileSync(new URL('./testing/traces.json', import.meta.url), 'utf8')) as Trace[];

describe('traces', () => {
  test.each(traces.map((t) => [t.name, t] as const))('%s', (_, t) => {
    const log = simulate({
      policy: policy({
        batching: t.batching ?? true,
        maxRows: t.maxRows ?? 8,
        preferredRows: t.preferred ?? [],
        maxQueueDelayUs: t.delayUs ?? 0,
        levels: t.levels ?? 1,
        defaultLevel: t.defaultLevel ?? 1,
        defaultQueue: {
          timeoutAction: t.action ?? 'REJECT',
          defaultTimeoutUs: t.timeoutUs ?? 0,
          allowTimeoutOverride: t.override ?? false,
          maxQueueSize: t.maxQueueSize ?? PLAIN_QUEUE.maxQueueSize,
        },
      }),
      instances: t.instances ?? 1,
      arrivals: t.arrivals,
      executionUs: () => t.executionUs,
    });
    expect(log.batches.map((b) => [b.startedUs, b.members, b.reason])).toEqual(t.batches);
    expect(log.expired.map((e) => [e.atUs, e.id])).toEqual(t.expired ?? []);
    expect(log.shed).toEqual(t.shed ?? []);
    expect(log.cancelled).toEqual(t.cancelled ?? []);
  });
});
