/** Counters of model versions as bytes, as both kinds of control messages carry them. */
import type { CountedTime, VersionCounters } from '@paceline/protocol';
import type { WireReader, WireWriter } from '@paceline/protocol/wire';

const STAGES = ['computeInput', 'computeInfer', 'computeOutput'] as const;
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
  }
}

export function readCounters(reader: WireReader): VersionCounters[] {
  return Array.from({ length: reader.count('versions') }, () => ({
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
  }));
}

function writeTime(writer: WireWriter, { count, ns }: CountedTime): void {
  writer.f64(count);
  writer.f64(ns);
}

function readTime(reader: WireReader): CountedTime {
  return { count: reader.f64('count'), ns: reader.f64('nanoseconds') };
}
