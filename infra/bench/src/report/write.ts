/** Puts a run's results on disk: everything as JSON, the curve as SVG; a name per run, nothing is overwritten. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MachineFacts } from '../measure/machine.js';
import type { BenchOptions } from '../options.js';
import type { ScenarioResult } from '../scenarios/scenario.js';
import { isReached, spread } from './figures.js';
import { latencyPlot } from './latency-plot.js';

export interface Run {
  readonly startedAt: Date;
  readonly machine: MachineFacts;
  readonly options: BenchOptions;
  readonly results: readonly ScenarioResult[];
  /** Scenarios that could not be measured, and why. */
  readonly failures: readonly { readonly scenario: string; readonly error: string }[];
}

/** @returns the files written. */
export function writeRun(run: Run): string[] {
  mkdirSync(run.options.out, { recursive: true });
  const stem = join(run.options.out, run.startedAt.toISOString().replaceAll(':', '-').slice(0, 19));
  const figures = run.results
    .flatMap((result) => result.figures)
    .map((figure) => ({ ...figure, ...spread(figure.values), reached: isReached(figure) }));
  const { serverEntry: _entry, baselineEntry: _baseline, out: _out, ...options } = run.options;
  writeFileSync(`${stem}.json`, `${JSON.stringify({ ...run, options, figures }, null, 2)}\n`);
  const points = run.results.flatMap((result) => result.points);
  if (points.length === 0) return [`${stem}.json`];
  writeFileSync(`${stem}.svg`, latencyPlot(points, 'Latency against rate: 50 MB network, one core'));
  return [`${stem}.json`, `${stem}.svg`];
}
