/**
 * The counters of a process as other processes of the cluster are told of them, and their sum over processes. Invariant:
 * counters are told whole, not as differences, so that a lost or repeated message changes nothing.
 */
import type { CountedTime, VersionCounters } from '@paceline/protocol';
import { ModelStatistics, type Duration, type StatisticsRegistry } from './statistics.js';

/** What one process has to tell. */
export class CountersReport {
  /** By model version: what it had counted when it was told last. */
  readonly #told = new Map<string, number>();

  constructor(private readonly statistics: StatisticsRegistry) {}

  /** Of each version that counted something since the last call. */
  changed(): VersionCounters[] {
    return [...this.statistics.all()].filter((s) => this.#hasChanged(s)).map(countersOf);
  }

  /** Of each version that counted anything: for somebody who is new. */
  all(): VersionCounters[] {
    return [...this.statistics.all()].filter((s) => eventsOf(s) > 0).map(countersOf);
  }

  #hasChanged(s: ModelStatistics): boolean {
    const key = keyOf(s.model, s.version);
    const events = eventsOf(s);
    if (events === (this.#told.get(key) ?? 0)) return false;
    this.#told.set(key, events);
    return true;
  }
}

/** Counters of this process and of others, summed when somebody asks. */
export class ClusterCounters {
  readonly #others = new Map<string, Map<string, VersionCounters>>();

  /** @param own of this process */
  constructor(private readonly own: StatisticsRegistry) {}

  /** Replaces what was known of those versions in that process. What a process that is gone has counted stays. */
  note(process: string, versions: readonly VersionCounters[]): void {
    let known = this.#others.get(process);
    if (known === undefined) {
      known = new Map();
      this.#others.set(process, known);
    }
    for (const each of versions) known.set(keyOf(each.model, each.version), each);
  }

  /** Forgets a version everywhere, as statistics do that are removed. */
  remove(model: string, version: string): void {
    for (const known of this.#others.values()) known.delete(keyOf(model, version));
  }

  find(model: string, version: string): ModelStatistics | undefined {
    const parts = [...this.#others.values()].flatMap((known) => known.get(keyOf(model, version)) ?? []);
    const own = this.own.find(model, version);
    if (parts.length === 0) return own;
    const sum = new ModelStatistics(model, version);
    for (const part of own ? [countersOf(own), ...parts] : parts) addTo(sum, part);
    sum.batching = own?.batching;
    return sum;
  }
}

const keyOf = (model: string, version: string): string => `${model}\u0000${version}`;

/** Grows with everything that {@link countersOf} tells. */
const eventsOf = (s: ModelStatistics): number => s.success.count + s.fail.count + s.queue.count + s.executionCount;

function countersOf(s: ModelStatistics): VersionCounters {
  const copy = ({ count, ns }: Duration): CountedTime => ({ count, ns });
  return {
    model: s.model,
    version: s.version,
    success: copy(s.success),
    fail: copy(s.fail),
    queue: copy(s.queue),
    computeInput: copy(s.computeInput),
    computeInfer: copy(s.computeInfer),
    computeOutput: copy(s.computeOutput),
    inferenceCount: s.inferenceCount,
    executionCount: s.executionCount,
    lastInferenceMs: s.lastInferenceMs,
    batchSizes: Array.from(s.batchSizes.values(), ({ batchSize, computeInput, computeInfer, computeOutput }) => ({
      batchSize,
      computeInput: copy(computeInput),
      computeInfer: copy(computeInfer),
      computeOutput: copy(computeOutput),
    })),
  };
}

const STAGES = ['computeInput', 'computeInfer', 'computeOutput'] as const;

function addTo(sum: ModelStatistics, part: VersionCounters): void {
  const add = (to: Duration, { count, ns }: CountedTime): void => {
    to.count += count;
    to.ns += ns;
  };
  for (const field of ['success', 'fail', 'queue', ...STAGES] as const) add(sum[field], part[field]);
  sum.inferenceCount += part.inferenceCount;
  sum.executionCount += part.executionCount;
  sum.lastInferenceMs = Math.max(sum.lastInferenceMs, part.lastInferenceMs);
  for (const size of part.batchSizes) {
    let known = sum.batchSizes.get(size.batchSize);
    if (known === undefined) {
      const none = (): Duration => ({ count: 0, ns: 0 });
      known = { batchSize: size.batchSize, computeInput: none(), computeInfer: none(), computeOutput: none() };
      sum.batchSizes.set(size.batchSize, known);
    }
    for (const stage of STAGES) add(known[stage], size[stage]);
  }
}
