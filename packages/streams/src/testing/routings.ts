/** Routings and counters for tests. */
import { create } from '@bufbuild/protobuf';
import type { CountedTime, Epoch, Routing, ServedModel, VersionCounters } from '@paceline/protocol';
import { ModelConfigSchema } from '@paceline/protocol/model-config';

/** @param labels how many labels its output has, which decides its size */
export function servedModel(name: string, version: string, labels: number): ServedModel {
  return {
    name,
    version,
    config: create(ModelConfigSchema, { name, maxBatchSize: 8, parameters: { p: { stringValue: 'v' } } }),
    maxBatchSize: 8,
    inputs: [{ name: 'IN', datatype: 'FP32', shape: [-1, 4], optional: true }],
    outputs: [{ name: 'OUT', datatype: 'BYTES', shape: [-1, 0, 3], optional: false, modelShape: [-1] }],
    labels: new Map([['OUT', Array.from({ length: labels }, (_, i) => `label number ${i}`)]]),
  };
}

export function routingOf(models: readonly ServedModel[], epoch: Epoch): Routing {
  return {
    epoch,
    generation: 4,
    models: models.map((model, i) => ({ model, generation: 2, partition: i, healthy: i % 2 === 0 })),
    index: [...models.map(({ name, version }) => ({ name, version, state: 'READY' as const, reason: '' })), { name: 'never loaded' }],
    started: true,
    allReady: false,
  };
}

/** Each number is another one. */
export function counters(batches: number): VersionCounters {
  let last = 0;
  const time = (): CountedTime => ({ count: ++last, ns: ++last + 0.5 });
  const stages = (): Pick<VersionCounters, 'computeInput' | 'computeInfer' | 'computeOutput'> => ({
    computeInput: time(),
    computeInfer: time(),
    computeOutput: time(),
  });
  return {
    model: 'm',
    version: '1',
    success: time(),
    fail: time(),
    queue: time(),
    ...stages(),
    inferenceCount: ++last,
    executionCount: ++last,
    lastInferenceMs: 2 ** 41,
    batchSizes: Array.from({ length: batches }, () => ({ batchSize: ++last, ...stages() })),
    ...(batches > 1 && {
      memoryBytes: ++last * 2 ** 30,
      batching: {
        sizes: [{ batchSize: ++last, p50Us: ++last + 0.5, worstUs: ++last, rowsPerSecond: ++last + 0.25 }],
        peakRows: batches === 2 ? undefined : ++last,
        objective: batches === 2 ? undefined : { objectiveMs: ++last, attained: ++last, missed: ++last, shed: ++last },
      },
    }),
  };
}
