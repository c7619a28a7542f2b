/** What the flags say about how model configurations are completed; the server and `paceline check` must agree. */
import { availableParallelism } from 'node:os';
import type { ServeOptions } from '@paceline/config';
import type { RepositorySourceOptions } from '../placement/repository-source.js';

export function sourceOptions({ backendConfig, repository }: ServeOptions): RepositorySourceOptions {
  const text = backendConfig.get('onnxruntime')?.get('default-max-batch-size');
  // Triton starts two instances of a CPU model that states no count. On one core the second would only split batches
  // and hold the weights twice.
  const cpuInstanceCount = Math.min(2, availableParallelism());
  const defaults = { cpuInstanceCount, autoComplete: repository.autoCompleteConfig };
  return text === undefined ? defaults : { ...defaults, defaultMaxBatchSize: Number(text) };
}
