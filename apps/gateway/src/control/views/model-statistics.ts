/** The statistics answer of both protocols: Triton's fields, from the counters that lanes and gateway keep. */
import { ServingError, type ModelCatalog } from '@paceline/protocol';
import { ModelStatistics, type Duration, type StatisticsReader } from '@paceline/telemetry';
import { batchingView, type BatchingView } from './batching-view.js';

/** Counts are requests or batches, `ns` cumulative nanoseconds; both whole numbers. */
export interface StatisticDuration {
  readonly count: number;
  readonly ns: number;
}

export interface MemoryUsageView {
  readonly type: 'CPU';
  /** Of the device. */
  readonly id: number;
  readonly byte_size: number;
}

export interface ModelStatisticsView {
  readonly name: string;
  readonly version: string;
  /** Milliseconds since the epoch; 0 = never. */
  readonly last_inference: number;
  readonly inference_count: number;
  readonly execution_count: number;
  readonly inference_stats: Readonly<
    Record<
      'success' | 'fail' | 'queue' | 'compute_input' | 'compute_infer' | 'compute_output' | 'cache_hit' | 'cache_miss',
      StatisticDuration
    >
  >;
  /** Only decoupled models have entries. */
  readonly response_stats: Readonly<Record<string, never>>;
  /** Ascending by batch size. */
  readonly batch_stats: readonly {
    readonly batch_size: number;
    readonly compute_input: StatisticDuration;
    readonly compute_infer: StatisticDuration;
    readonly compute_output: StatisticDuration;
  }[];
  /** Resident memory of its instances; empty where it was not measured yet. */
  readonly memory_usage: readonly MemoryUsageView[];
  /** Not Triton's; absent before the model took requests, and in gRPC. */
  readonly paceline?: BatchingView;
}

const whole = ({ count, ns }: Duration): StatisticDuration => ({ count, ns: Math.round(ns) });
const none: StatisticDuration = { count: 0, ns: 0 };

function view(s: ModelStatistics, memoryBytes: number | undefined): ModelStatisticsView {
  return {
    name: s.model,
    version: s.version,
    last_inference: Math.round(s.lastInferenceMs),
    inference_count: s.inferenceCount,
    execution_count: s.executionCount,
    inference_stats: {
      success: whole(s.success),
      fail: whole(s.fail),
      queue: whole(s.queue),
      compute_input: whole(s.computeInput),
      compute_infer: whole(s.computeInfer),
      compute_output: whole(s.computeOutput),
      cache_hit: none,
      cache_miss: none,
    },
    response_stats: {},
    batch_stats: [...s.batchSizes.values()]
      .sort((a, b) => a.batchSize - b.batchSize)
      .map((size) => ({
        batch_size: size.batchSize,
        compute_input: whole(size.computeInput),
        compute_infer: whole(size.computeInfer),
        compute_output: whole(size.computeOutput),
      })),
    memory_usage: memoryBytes === undefined ? [] : [{ type: 'CPU', id: 0, byte_size: Math.round(memoryBytes) }],
    ...(s.batching && { paceline: batchingView(s.batching) }),
  };
}

const key = (model: string, version: string): string => `${model}\u0000${version}`;

/** Bytes per model version, over its instances. */
function memoryOf(statistics: StatisticsReader): ReadonlyMap<string, number> {
  const bytes = new Map<string, number>();
  for (const { model, version, residentBytes } of statistics.instanceMemory())
    bytes.set(key(model, version), (bytes.get(key(model, version)) ?? 0) + residentBytes);
  return bytes;
}

/**
 * @param name "" = every model. @param version "" = every ready version of the model.
 * @throws ServingError INVALID_ARGUMENT for a model or version that is not ready.
 */
export function modelStatistics(
  catalog: ModelCatalog,
  statistics: StatisticsReader,
  name: string,
  version: string,
): readonly ModelStatisticsView[] {
  const memory = memoryOf(statistics);
  return versionsOf(catalog, name, version).map((served) =>
    view(
      statistics.find(served.name, served.version) ?? new ModelStatistics(served.name, served.version),
      memory.get(key(served.name, served.version)),
    ),
  );
}

function versionsOf(catalog: ModelCatalog, name: string, version: string): readonly { readonly name: string; readonly version: string }[] {
  if (name === '') {
    return [...catalog.served()].sort((a, b) => (a.name === b.name ? Number(a.version) - Number(b.version) : a.name < b.name ? -1 : 1));
  }
  const ready = catalog.readyVersions(name);
  if (version !== '' && !/^\d{1,18}$/.test(version)) return [catalog.resolve(name, version)];
  if (ready.length === 0)
    throw new ServingError('INVALID_ARGUMENT', `requested model '${name}' is not available`, { reason: 'model_not_available' });
  if (version === '') return ready.map((v) => ({ name, version: v }));
  if (!ready.includes(version)) {
    throw new ServingError('INVALID_ARGUMENT', `requested model version is not available for model '${name}'`, {
      reason: 'model_not_available',
    });
  }
  return [{ name, version }];
}
