// The plot is a sound SVG whose points stand where their values say.
import { describe, expect, test } from '@jest/globals';
import type { RatePoint } from '../scenarios/scenario.js';
import { linearAxis, logAxis } from './axis.js';
import { latencyPlot } from './latency-plot.js';

function point(series: string, offeredPerS: number, p50Ms: number, p99Ms: number): RatePoint {
  return {
    series,
    offeredPerS,
    latency: { p50Ms, p90Ms: p50Ms, p99Ms, maxMs: p99Ms },
    round: 0,
    answered: 1,
    failed: 0,
    firstFailure: undefined,
    refused: undefined,
    withinObjective: undefined,
    elapsedMs: 1,
    ratePerS: offeredPerS,
    sendLag: undefined,
    generatorCpuShare: 0,
    cpuSecondsPer1000: 0,
    meanBatchRows: 1,
    otherWorkShare: 0,
  };
}

describe('axes', () => {
  test('linear: round ticks that hold the highest value', () => {
    const axis = linearAxis(4300, 0, 100);
    expect(axis.ticks).toEqual([0, 1000, 2000, 3000, 4000, 5000]);
    expect(axis.toPixel(2500)).toBe(50);
  });

  test('logarithmic: half decades', () => {
    const axis = logAxis(1, 100, 0, 100);
    expect(axis.ticks).toEqual([1, 3, 10, 30, 100]);
    expect(axis.toPixel(10)).toBeCloseTo(50);
  });
});

describe('latencyPlot', () => {
  const svg = latencyPlot([point('a<b', 100, 2, 9), point('a<b', 400, 5, 80), point('lost', 50, Number.NaN, Number.NaN)], 'title & more');

  test('two lines for a series, none for points without a latency, text escaped', () => {
    expect(svg.match(/<polyline/g)).toHaveLength(2);
    expect(svg.match(/<circle/g)).toHaveLength(4);
    expect(svg).toContain('a&lt;b p99');
    expect(svg).toContain('title &amp; more');
    expect(svg).not.toContain('NaN');
  });

  test('no points: an empty frame, not a broken file', () => {
    expect(latencyPlot([], 'nothing')).not.toMatch(/NaN|Infinity|undefined/);
  });
});
