/** One measured load of one target: what the generator saw, and what the target's processes spent on it meanwhile. */
import type { Generator } from '../generators/generator.js';
import type { LoadPlan, LoadResult } from '../generators/load-plan.js';
import type { Target } from '../targets/target.js';
import { coreBusySeconds } from './machine.js';
import { treeCpuSeconds } from './process-tree.js';

export interface LoadSample extends LoadResult {
  readonly series: string;
  readonly round: number;
  /** User and system time of the target's whole process tree. */
  readonly cpuSecondsPer1000: number;
  /** The same for each part of the target that tells its parts. */
  readonly partCpuSecondsPer1000?: Readonly<Record<string, number>>;
  /** Mean rows of a batch; undefined where the target does not batch. */
  readonly meanBatchRows: number | undefined;
  /** Share of the target's core that other processes took: above 0.05 the figure is in doubt. */
  readonly otherWorkShare: number;
}

export interface LoadSubject {
  readonly series: string;
  readonly target: Target;
  readonly plan: LoadPlan;
}

export async function sampleLoad(generator: Generator, subject: LoadSubject, round: number, core: number): Promise<LoadSample> {
  const { target, plan } = subject;
  let cpuAtOpen = Number.NaN;
  let busyAtOpen = Number.NaN;
  let partsAtOpen = new Map<string, number>();
  let countsAtOpen = Promise.resolve(undefined) as ReturnType<Target['batchCounts']>;
  const result = await generator.run(plan, () => {
    cpuAtOpen = treeCpuSeconds(target.pid);
    partsAtOpen = partCpuSeconds(target);
    busyAtOpen = coreBusySeconds(core);
    countsAtOpen = target.batchCounts(plan.model);
  });
  const cpuSeconds = treeCpuSeconds(target.pid) - cpuAtOpen;
  const parts = [...partCpuSeconds(target)].map(([name, seconds]) => [name, seconds - (partsAtOpen.get(name) ?? Number.NaN)] as const);
  const otherSeconds = coreBusySeconds(core) - busyAtOpen - cpuSeconds;
  const [before, after] = [await countsAtOpen, await target.batchCounts(plan.model)];
  const executions = (after?.executions ?? 0) - (before?.executions ?? 0);
  return {
    ...result,
    series: subject.series,
    round,
    cpuSecondsPer1000: (cpuSeconds * 1000) / result.answered,
    ...(parts.length > 0 && {
      partCpuSecondsPer1000: Object.fromEntries(parts.map(([name, seconds]) => [name, (seconds * 1000) / result.answered])),
    }),
    meanBatchRows: executions > 0 ? ((after?.inferences ?? 0) - (before?.inferences ?? 0)) / executions : undefined,
    otherWorkShare: Math.max(0, (otherSeconds * 1000) / result.elapsedMs),
  };
}

/** User and system time of each part's tree, seconds. */
function partCpuSeconds(target: Target): Map<string, number> {
  return new Map([...(target.parts?.() ?? [])].map(([name, pid]) => [name, treeCpuSeconds(pid)]));
}
