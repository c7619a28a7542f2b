/** The tables a run prints: the loads, the limit by batch size, and each figure beside its target. */
import Table from 'cli-table3';
import type { LoadSample } from '../measure/load-sample.js';
import type { RatePoint, ScenarioResult } from '../scenarios/scenario.js';
import { isReached, spread, type Figure } from './figures.js';

const PLAIN = { style: { head: [], border: [] } };

/** Three significant digits, without an exponent. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return 'none';
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 4));
}

function spreadText(values: readonly number[]): string {
  const { median, min, max } = spread(values);
  return values.length > 1 ? `${short(median)} (${short(min)}-${short(max)})` : short(median);
}

const LOAD_HEAD = ['rate /s', 'p50 ms', 'p90 ms', 'p99 ms', 'CPU s/1000', 'batch', 'generator', 'other work'];

function loadCells(samples: readonly LoadSample[]): string[] {
  const median = (pick: (sample: LoadSample) => number): string => short(spread(samples.map(pick)).median);
  return [
    spreadText(samples.map((sample) => sample.ratePerS)),
    median((sample) => sample.latency.p50Ms),
    median((sample) => sample.latency.p90Ms),
    median((sample) => sample.latency.p99Ms),
    median((sample) => sample.cpuSecondsPer1000),
    median((sample) => sample.meanBatchRows ?? Number.NaN),
    median((sample) => sample.generatorCpuShare),
    median((sample) => sample.otherWorkShare),
  ];
}

function loadTable(samples: readonly LoadSample[]): string {
  const table = new Table({ head: ['series', ...LOAD_HEAD], ...PLAIN });
  for (const [series, rounds] of Map.groupBy(samples, (sample) => sample.series)) table.push([series, ...loadCells(rounds)]);
  return table.toString();
}

function pointTable(points: readonly RatePoint[]): string {
  const table = new Table({ head: ['model', 'offered /s', ...LOAD_HEAD, 'sent late p99 ms'], ...PLAIN });
  for (const point of points) {
    table.push([point.series, short(point.offeredPerS), ...loadCells([point]), short(point.sendLag?.p99Ms ?? Number.NaN)]);
  }
  return table.toString();
}

function limitTable({ limits }: ScenarioResult): string {
  const bySize = Map.groupBy(
    limits.flatMap(({ sizes }) => sizes),
    ({ rows }) => rows,
  );
  const table = new Table({ head: ['in process, rows a batch', 'rows/s', 'p50 ms a batch'], ...PLAIN });
  for (const [rows, samples] of bySize) {
    table.push([rows, spreadText(samples.map(({ rowsPerS }) => rowsPerS)), short(spread(samples.map(({ runP50Ms }) => runP50Ms)).median)]);
  }
  return table.toString();
}

/** Everything about one scenario but its figures, which stand together at the end. */
export function scenarioText(result: ScenarioResult): string {
  const parts: string[] = [];
  if (result.samples.length > 0) parts.push(loadTable(result.samples));
  if (result.points.length > 0) parts.push(pointTable(result.points));
  if (result.limits.length > 0 && result.scenario !== 'latency') parts.push(limitTable(result));
  return [...parts, ...result.notes].join('\n');
}

function goalText({ goal, unit }: Figure): string {
  return 'atLeast' in goal ? `>= ${goal.atLeast} ${unit}` : `<= ${goal.atMost} ${unit}`;
}

export function figureTable(figures: readonly Figure[]): string {
  const table = new Table({ head: ['scenario', 'figure', 'target', 'measured: median (min-max)', ''], ...PLAIN });
  for (const figure of figures) {
    table.push([
      figure.scenario,
      figure.what,
      goalText(figure).trim(),
      `${spreadText(figure.values)} ${figure.unit}`.trim(),
      isReached(figure) ? 'pass' : 'MISS',
    ]);
  }
  return table.toString();
}
