/** Spans as a collector gets them: their parents, times, errors, what is sampled, and collectors that fail. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';
import { startOtlpCollector, type OtlpCollector } from '@paceline/testkit';
import { pino } from 'pino';
import { openOtlpTracing } from './otlp-tracing.js';
import type { Tracing } from './tracing.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

let collector: OtlpCollector;
const open: Tracing[] = [];
let logged: Record<string, unknown>[];
beforeEach(async () => {
  collector = await startOtlpCollector();
  logged = [];
});
afterEach(async () => {
  for (const tracing of open.splice(0)) await tracing.close();
  await collector.close();
});

async function tracingOf({ sampleRate = 1, endpoint = collector.url } = {}): Promise<Tracing> {
  const logger = pino({ base: undefined }, { write: (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>) });
  const tracing = await openOtlpTracing({ endpoint, sampleRate, service: 'paceline-test', instance: 'i-1', clock: systemClock, logger });
  open.push(tracing);
  return tracing;
}

const infer = (tracing: Tracing, parent?: string) =>
  tracing.start({ name: 'paceline.infer', parent, startUs: systemClock.nowUs(), attributes: { 'paceline.model': 'm' } });

describe('spans', () => {
  test('continue the trace of a client and are parents of what comes behind', async () => {
    const tracing = await tracingOf();
    const beganUs = systemClock.nowUs();
    const beganNs = BigInt(Date.now()) * 1_000_000n;
    const first = tracing.start({
      name: 'paceline.infer',
      parent: `00-${TRACE}-${PARENT}-01`,
      startUs: beganUs,
      attributes: { 'paceline.model': 'm' },
    });
    expect(first?.traceParent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
    const link = `00-${TRACE}-${PARENT}-01`;
    const behind = {
      name: 'paceline.queue',
      parent: first?.traceParent,
      startUs: beganUs + 10,
      attributes: {},
      links: [link, 'nonsense'],
    } as const;
    const second = tracing.start(behind);
    second?.end({ endUs: beganUs + 1510.25 });
    first?.end({ endUs: beganUs + 5000, attributes: { 'paceline.rows': 3 } });
    await tracing.close();
    const [queue, server] = collector.spans;
    expect(server).toMatchObject({
      name: 'paceline.infer',
      service: 'paceline-test',
      instance: 'i-1',
      traceId: TRACE,
      parentSpanId: PARENT,
      kind: 2,
      status: 0,
      attributes: { 'paceline.model': 'm', 'paceline.rows': 3 },
    });
    expect(queue).toMatchObject({ traceId: TRACE, parentSpanId: server?.spanId, links: [PARENT], kind: 1 });
    expect(queue!.endNs - queue!.startNs).toBe(1_500_250n);
    expect(Number(server!.startNs - beganNs) / 1e6).toBeCloseTo(0, -2);
  });

  test('say why it went wrong', async () => {
    const tracing = await tracingOf();
    const error = new ServingError('DEADLINE_EXCEEDED', 'too late', { reason: 'request_timeout' });
    infer(tracing)?.end({ endUs: systemClock.nowUs(), error });
    await tracing.close();
    expect(collector.spans[0]).toMatchObject({
      parentSpanId: undefined,
      status: 2,
      attributes: { 'error.type': 'request_timeout', 'paceline.code': 'DEADLINE_EXCEEDED' },
    });
  });

  test('there are none for what is not sampled, whether the client or the rate says so', async () => {
    const none = await tracingOf({ sampleRate: 0 });
    expect(infer(none)).toBeUndefined();
    expect(infer(none, `00-${TRACE}-${PARENT}-01`)).toBeDefined();
    const all = await tracingOf();
    expect(infer(all, `00-${TRACE}-${PARENT}-00`)).toBeUndefined();
    // What is not in its form is treated as not sent.
    expect(infer(all, `00-${TRACE.toUpperCase()}-${PARENT}-00`)).toBeDefined();
    expect(infer(all, `00-${TRACE}-${'0'.repeat(16)}-00`)).toBeDefined();
  });

  test('a rate between is met', async () => {
    const some = await tracingOf({ sampleRate: 0.25 });
    let sampled = 0;
    for (let i = 0; i < 4000; i++) if (infer(some)) sampled++;
    // Ten standard deviations around the 1000 expected.
    expect(Math.abs(sampled - 1000)).toBeLessThan(275);
  });
});

describe('a collector', () => {
  test('that refuses is complained of once, and praised once it takes spans again', async () => {
    collector.status = 400;
    const tracing = await tracingOf();
    const span = (): void => infer(tracing)?.end({ endUs: systemClock.nowUs() });
    span();
    await collector.until(() => collector.exports === 1);
    span();
    await collector.until(() => collector.exports === 2);
    collector.status = 200;
    span();
    await collector.until((spans) => spans.length === 1);
    await tracing.close();
    expect(logged.map(({ msg }) => msg)).toEqual(['the collector takes no spans; they are dropped', 'the collector takes spans again']);
  });

  test('that is not there holds up the end for no longer than its limit', async () => {
    await collector.close();
    const tracing = await tracingOf();
    infer(tracing)?.end({ endUs: systemClock.nowUs() });
    const beganUs = systemClock.nowUs();
    await tracing.close();
    expect(systemClock.nowUs() - beganUs).toBeLessThan(3_000_000);
  });
});
