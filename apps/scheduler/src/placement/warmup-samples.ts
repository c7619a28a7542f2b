/** Makes the warmup samples of a model from their plans and the files of its `warmup` folder. */
import { warmupTensor, type WarmupInputPlan, type WarmupPlan } from '@paceline/core';
import type { LocalModelRepository, RepositoryModel } from '@paceline/model-repository';
import { ServingError } from '@paceline/protocol';
import { elementSize, type Tensor } from '@paceline/tensor';
import type { WarmupSample } from '@paceline/worker-rpc';

/** Largest file of elements without a fixed size, bytes. */
const MAX_STRINGS_BYTES = 64 * 1024 * 1024;

/** @throws ServingError INVALID_ARGUMENT naming the sample, the input and the file that does not fit */
export async function readWarmup(
  repository: LocalModelRepository,
  model: RepositoryModel,
  plans: readonly WarmupPlan[],
): Promise<WarmupSample[]> {
  const samples: WarmupSample[] = [];
  for (const plan of plans) {
    const inputs: Tensor[] = [];
    for (const input of plan.inputs) inputs.push(await readInput(repository, model, plan, input));
    samples.push({ name: plan.name, count: plan.count, rows: Math.max(1, plan.rows), inputs });
  }
  return samples;
}

async function readInput(
  repository: LocalModelRepository,
  model: RepositoryModel,
  plan: WarmupPlan,
  input: WarmupInputPlan,
): Promise<Tensor> {
  if (input.content.kind !== 'file') return warmupTensor(input, plan.rows, undefined);
  const rowBytes = input.rowShape.reduce((product, dim) => product * dim, elementSize(input.datatype));
  const { path } = input.content;
  try {
    const file = await repository.warmupFile(model, path, elementSize(input.datatype) === 0 ? MAX_STRINGS_BYTES : Math.max(rowBytes, 1024));
    return warmupTensor(input, plan.rows, file);
  } catch (cause) {
    const why = cause instanceof ServingError ? cause.message : `'${model.name}/warmup/${path}': ${(cause as Error).message}`;
    throw new ServingError('INVALID_ARGUMENT', `warmup sample '${plan.name}' of model '${model.name}', input '${input.name}': ${why}`, {
      reason: 'warmup_data',
      cause,
    });
  }
}
