/**
 * The counters of a process as other processes of the cluster are told of them, and their sum over processes. Invariant:
 * counters are told whole, not as differences, so that a lost or repeated message changes nothing.
 */
import type { CountedTime, VersionCounters } from '@paceline/protocol';
import type { BatchingStatistics, BatchProfileReading } from './batching-statistics.js';
import { ModelStatistics, type Duration, type InstanceMemoryReading, type StatisticsRegistry } from './statistics.js';

/** Resident memory of a version's instances, bytes. */
export interface VersionMemory {
  readonly model: string;
  readonly version: string;
  readonly memoryBytes: number;
}

/** What one process has to tell. */
export class CountersReport {
  /** By model version: what it had counted, and the memory, when it was told last. */
  readonly #told = new Map<string, { readonly events: number; readonly memoryBytes: number | undefined }>();

  /** @param memory of each version whose instances this process knows; by default of none */
  constructor(
    private readonly statistics: StatisticsRegistry,
    private readonly memory: () => Iterable<VersionMemory> = () => [],
  ) {}

  /** Of each version that counted something, or takes other memory, since the last call. */
  changed(): VersionCounters[] {
    return [...this.#readings()].filter((reading) => this.#hasChanged(reading)).map(countersOf);
  }

  /** Of each version that counted anything or takes memory: for somebody who is new. */
  all(): VersionCounters[] {
    return [...this.#readings()].filter(({ s, memoryBytes }) => eventsOf(s) > 0 || memoryBytes !== undefined).map(countersOf);
  }

  *#readings(): Generator<Reading> {
    const memory = new Map<string, VersionMemory>();
    for (const each of this.memory()) memory.set(keyOf(each.model, each.version), each);
    for (const s of this.statistics.all()) {
      const key = keyOf(s.model, s.version);
      // What took memory and is nowhere any more takes none.
      const none = this.#told.get(key)?.memoryBytes === undefined ? undefined : 0;
      yield { s, memoryBytes: memory.get(key)?.memoryBytes ?? none };
      memory.delete(key);
    }
    for (const { model, version, memoryBytes } of memory.values()) yield { s: new ModelStatistics(model, version), memoryBytes };
  }

  #hasChanged({ s, memoryBytes }: Reading): boolean {
    const key = keyOf(s.model, s.version);
    const events = eventsOf(s);
    const told = this.#told.get(key);
    if (events === (told?.events ?? 0) && memoryBytes === told?.memoryBytes) return false;
    this.#told.set(key, { events, memoryBytes });
    return true;
  }
}

interface Reading {
  readonly s: ModelStatistics;
  readonly memoryBytes?: number | undefined;
}

/** So many processes are remembered one by one; those that were told of least lately are kept as one sum. */
const MAX_PROCESSES = 256;

/** Counters of this process and of others, summed when somebody asks. */
export class ClusterCounters {
  /** By process, last told last. */
  readonly #others = new Map<string, Map<string, VersionCounters>>();
  /** What was told last of a version, by whichever process. */
  readonly #memory = new Map<string, VersionMemory>();

  /** @param own of this process */
  constructor(private readonly own: StatisticsRegistry) {}

  /**
   * Replaces what was known of those versions in that process. What a process that is gone has counted stays in the sums,
   * which must not shrink.
   */
  note(process: string, versions: readonly VersionCounters[]): void {
    const known = this.#others.get(process) ?? new Map<string, VersionCounters>();
    this.#others.delete(process);
    this.#others.set(process, known);
    for (const each of versions) {
      const { model, version, memoryBytes } = each;
      const key = keyOf(model, version);
      known.set(key, each);
      if (memoryBytes !== undefined) this.#memory.set(key, { model, version, memoryBytes });
    }
    if (this.#others.size > MAX_PROCESSES) this.#foldOldest();
  }

  /** Forgets a version everywhere, as statistics do that are removed. */
  remove(model: string, version: string): void {
    this.#memory.delete(keyOf(model, version));
    for (const known of this.#others.values()) known.delete(keyOf(model, version));
  }

  /** How many are remembered one by one, or as the sum of those before. */
  get processes(): number {
    return this.#others.size;
  }

  /** Of each version, over all its instances. */
  *instanceMemory(): Generator<InstanceMemoryReading> {
    for (const { model, version, memoryBytes } of this.#memory.values())
      if (memoryBytes > 0) yield { model, version, instance: '', residentBytes: memoryBytes };
  }

  find(model: string, version: string): ModelStatistics | undefined {
    const parts = [...this.#others.values()].flatMap((known) => known.get(keyOf(model, version)) ?? []);
    const own = this.own.find(model, version);
    if (parts.length === 0) return own;
    const sum = new ModelStatistics(model, version);
    for (const part of own ? [countersOf({ s: own }), ...parts] : parts) addTo(sum, part);
    sum.batching = own?.batching ?? batchingOf(parts);
    return sum;
  }

  /** The two that were told of least lately become one. */
  #foldOldest(): void {
    const [first, second] = this.#others;
    if (!first || !second) return;
    const [[process, older], [next, newer]] = [first, second];
    for (const [key, part] of older) {
      const other = newer.get(key);
      if (!other) {
        newer.set(key, part);
        continue;
      }
      const sum = new ModelStatistics(part.model, part.version);
      addTo(sum, part);
      addTo(sum, other);
      sum.batching = batchingOf([part, other]);
      newer.set(key, countersOf({ s: sum }));
    }
    this.#others.delete(process);
    // It stays the oldest, under a name that no process has.
    this.#others.delete(next);
    const rest = [...this.#others];
    this.#others.clear();
    for (const [name, known] of [[FOLDED, newer] as const, ...rest]) this.#others.set(name, known);
  }
}

const FOLDED = 'others';

const keyOf = (model: string, version: string): string => `${model}\u0000${version}`;

/** Grows with everything that {@link countersOf} tells. */
const eventsOf = (s: ModelStatistics): number => s.success.count + s.fail.count + s.queue.count + s.executionCount;

function countersOf({ s, memoryBytes }: Reading): VersionCounters {
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
    ...(memoryBytes !== undefined && { memoryBytes }),
    ...(s.batching && { batching: { ...s.batching.profile(), objective: s.batching.objective && { ...s.batching.objective } } }),
  };
}

/** What the lane that executed last has learned; requests are counted over all that had the same objective. */
function batchingOf(parts: readonly VersionCounters[]): BatchingStatistics | undefined {
  const lanes = parts.filter(({ batching }) => batching !== undefined).sort((a, b) => b.lastInferenceMs - a.lastInferenceMs);
  const batching = lanes[0]?.batching;
  if (!batching) return undefined;
  const { sizes, peakRows, objective } = batching;
  const profile = (): BatchProfileReading => ({ sizes, peakRows });
  if (!objective) return { profile, objective: undefined };
  const sum = { objectiveMs: objective.objectiveMs, attained: 0, missed: 0, shed: 0 };
  for (const { batching: { objective: counted } = {} } of lanes) {
    if (counted?.objectiveMs !== sum.objectiveMs) continue;
    sum.attained += counted.attained;
    sum.missed += counted.missed;
    sum.shed += counted.shed;
  }
  return { profile, objective: sum };
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
