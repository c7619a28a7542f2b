/** Counters of model versions as bytes, as both kinds of control messages carry them. */
import type { CountedTime, LearnedBatching, VersionCounters } from '@paceline/protocol';
import type { WireReader, WireWriter } from '@paceline/protocol/wire';

const STAGES = ['computeInput', 'computeInfer', 'computeOutput'] as const;
const HAS_MEMORY = 1;
const HAS_BATCHING = 2;
const HAS_PEAK = 1;
const HAS_OBJECTIVE = 2;
const TIMES = ['success', 'fail', 'queue', ...STAGES] as const;

export function writeCounters(writer: WireWriter, versions: readonly VersionCounters[]): void {
  writer.varint(versions.length);
  for (const each of versions) {
    writer.string(each.model);
    writer.string(each.version);
    for (const name of TIMES) writeTime(writer, each[name]);
    writer.f64(each.inferenceCount);
    writer.f64(each.executionCount);
    writer.f64(each.lastInferenceMs);
    writer.varint(each.batchSizes.length);
    for (const size of each.batchSizes) {
      writer.varint(size.batchSize);
      for (const stage of STAGES) writeTime(writer, size[stage]);
    }
    const { memoryBytes, batching } = each;
    writer.u8((memoryBytes === undefined ? 0 : HAS_MEMORY) | (batching === undefined ? 0 : HAS_BATCHING));
    if (memoryBytes !== undefined) writer.f64(memoryBytes);
    if (batching !== undefined) writeBatching(writer, batching);
  }
}

export function readCounters(reader: WireReader): VersionCounters[] {
  return Array.from({ length: reader.count('versions') }, () => {
    const counted = readCounted(reader);
    const flags = reader.u8('flags of counters');
    return {
      ...counted,
      ...(flags & HAS_MEMORY && { memoryBytes: reader.f64('memory') }),
      ...(flags & HAS_BATCHING && { batching: readBatching(reader) }),
    };
  });
}

function readCounted(reader: WireReader): VersionCounters {
  return {
    model: reader.string('model'),
    version: reader.string('version'),
    success: readTime(reader),
    fail: readTime(reader),
    queue: readTime(reader),
    computeInput: readTime(reader),
    computeInfer: readTime(reader),
    computeOutput: readTime(reader),
    inferenceCount: reader.f64('inference count'),
    executionCount: reader.f64('execution count'),
    lastInferenceMs: reader.f64('last inference'),
    batchSizes: Array.from({ length: reader.count('batch sizes') }, () => ({
      batchSize: reader.varint('batch size'),
      computeInput: readTime(reader),
      computeInfer: readTime(reader),
      computeOutput: readTime(reader),
    })),
  };
}

function writeBatching(writer: WireWriter, { sizes, peakRows, objective }: LearnedBatching): void {
  writer.varint(sizes.length);
  for (const { batchSize, p50Us, worstUs, rowsPerSecond } of sizes) {
    writer.varint(batchSize);
    for (const value of [p50Us, worstUs, rowsPerSecond]) writer.f64(value);
  }
  writer.u8((peakRows === undefined ? 0 : HAS_PEAK) | (objective === undefined ? 0 : HAS_OBJECTIVE));
  if (peakRows !== undefined) writer.f64(peakRows);
  if (objective === undefined) return;
  const { objectiveMs, attained, missed, shed } = objective;
  for (const value of [objectiveMs, attained, missed, shed]) writer.f64(value);
}

function readBatching(reader: WireReader): LearnedBatching {
  const sizes = Array.from({ length: reader.count('learned sizes') }, () => ({
    batchSize: reader.varint('learned size'),
    p50Us: reader.f64('median'),
    worstUs: reader.f64('worst'),
    rowsPerSecond: reader.f64('rows a second'),
  }));
  const flags = reader.u8('flags of batching');
  const peakRows = flags & HAS_PEAK ? reader.f64('peak') : undefined;
  if (!(flags & HAS_OBJECTIVE)) return { sizes, peakRows, objective: undefined };
  const [objectiveMs, attained, missed] = [reader.f64('objective'), reader.f64('attained'), reader.f64('missed')];
  return { sizes, peakRows, objective: { objectiveMs, attained, missed, shed: reader.f64('shed') } };
}

function writeTime(writer: WireWriter, { count, ns }: CountedTime): void {
  writer.f64(count);
  writer.f64(ns);
}

function readTime(reader: WireReader): CountedTime {
  return { count: reader.f64('count'), ns: reader.f64('nanoseconds') };
}
