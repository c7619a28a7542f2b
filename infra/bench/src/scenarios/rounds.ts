/** Interleaving: each round measures every subject once, every second round backwards (A B, B A, ...). */
import { sampleLoad, type LoadSample, type LoadSubject } from '../measure/load-sample.js';
import { LIMIT_ROWS, type Limit } from '../targets/limit.js';
import { ratios, spread } from '../report/figures.js';
import type { LimitRound, Rig } from './scenario.js';

export interface RoundsResult {
  readonly samples: LoadSample[];
  readonly limits: LimitRound[];
}

/** The limit over all batch sizes, largest rate last in mind: a round's limit is its best size. */
export async function limitRound(rig: Rig, limit: Limit, round: number): Promise<LimitRound> {
  const sizes = [];
  for (const rows of LIMIT_ROWS) sizes.push(await limit.measure(rows, rig.options.limitMs));
  return { round, sizes };
}

/** Loads every subject once so that no round pays for compilation and first allocations. */
async function warmUp(rig: Rig, subjects: readonly LoadSubject[]): Promise<void> {
  for (const { plan } of subjects) {
    await rig.generator.run({ ...plan, measureMs: rig.options.quick ? 500 : 2000 }, () => undefined);
  }
}

export async function interleavedRounds(rig: Rig, subjects: readonly LoadSubject[], limit?: Limit): Promise<RoundsResult> {
  const samples: LoadSample[] = [];
  const limits: LimitRound[] = [];
  await warmUp(rig, subjects);
  for (let round = 0; round < rig.options.rounds; round++) {
    const steps = subjects.map((subject) => async (): Promise<void> => {
      const sample = await sampleLoad(rig.generator, subject, round, rig.options.serverCore);
      rig.say(`  round ${round + 1}: ${subject.series} ${sample.ratePerS.toFixed(0)}/s`);
      samples.push(sample);
    });
    if (limit !== undefined) {
      steps.push(async () => {
        limits.push(await limitRound(rig, limit, round));
      });
    }
    if (round % 2 === 1) steps.reverse();
    for (const step of steps) await step();
  }
  return { samples, limits };
}

/**
 * The same share as the figure's, but of CPU time: other work on the core disturbs it far less than it does rates.
 * @param reference CPU seconds per 1,000 of what Paceline is held against, in the order of the rounds.
 */
export function cpuShareNote(samples: readonly LoadSample[], series: string, reference: readonly number[]): string {
  const own = samples.filter((sample) => sample.series === series).map((sample) => sample.cpuSecondsPer1000);
  const { median, min, max } = spread(ratios(reference, own));
  return `by CPU time instead of rate: ${median.toFixed(3)} (${min.toFixed(3)}-${max.toFixed(3)})`;
}

/** The samples of one series, in the order of the rounds. */
export function seriesOf(samples: readonly LoadSample[], series: string): LoadSample[] {
  return samples.filter((sample) => sample.series === series);
}

/** The rates of one series, in the order of the rounds. */
export function ratesOf(samples: readonly LoadSample[], series: string): number[] {
  return seriesOf(samples, series).map((sample) => sample.ratePerS);
}

/** The best rate over all batch sizes, in the order of the rounds. */
export function bestLimits(limits: readonly LimitRound[]): number[] {
  return limits.map(({ sizes }) => Math.max(...sizes.map((size) => size.rowsPerS)));
}
