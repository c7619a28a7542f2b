/** The trace keeps its arrivals and its shape at any rate. */
import { describe, expect, it } from '@jest/globals';
import { conversationArrivalsMs, conversationTimesMs } from './trace.js';

describe('the conversation trace', () => {
  it('holds 19,366 arrivals of about an hour, in order', () => {
    const arrivals = conversationArrivalsMs();
    expect(arrivals).toHaveLength(19_366);
    expect(arrivals.at(-1)).toBe(3_501_722);
    expect(arrivals.every((at, i) => i === 0 || at >= (arrivals[i - 1] ?? 0))).toBe(true);
  });

  it('comes at the rate it is scaled to, and begins anew after its end', () => {
    const times = conversationTimesMs(1000, 3 * 19_366);
    expect(times).toHaveLength(3 * 19_366);
    expect(times[19_366]).toBeCloseTo(19_366, 6);
    expect(times.every((at, i) => i === 0 || at >= (times[i - 1] ?? 0))).toBe(true);
  });

  it('keeps the proportions of its gaps', () => {
    const arrivals = conversationArrivalsMs();
    const times = conversationTimesMs(500, 1000);
    const scale = (times[1] ?? 0) / (arrivals[1] ?? 1);
    expect((times[20] ?? 0) / (arrivals[20] ?? 1)).toBeCloseTo(scale, 9);
  });
});
