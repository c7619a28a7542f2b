/** Says of a model that asks for GPUs which this worker does not have: who asked, for what, what is there, and what to do. */
import { SIMULATED_BACKEND, type MissingGpu } from '@paceline/core';
import type { ModelConfig } from '@paceline/protocol/model-config';
import { gpusFor, type GpuInventory } from './gpus.js';
import { providerFile } from './provider-libraries.js';

/** One sentence. */
export function describeMissing({ group, gpu }: MissingGpu, { name, backend }: ModelConfig, inventory: GpuInventory): string {
  const wanted = gpu === undefined ? 'a GPU' : `GPU ${gpu}`;
  return `instance group '${group}' of model '${name}' asks for ${wanted}, ${found(backend, inventory)}`;
}

function found(backend: string, inventory: GpuInventory): string {
  const usable = gpusFor(inventory, backend);
  if (usable.length > 0) {
    const listed = inventory.gpus.map(({ index, name }) => `${index} (${name})`).join(', ');
    return `and this worker has GPU ${listed}; list those, or write kind: KIND_CPU`;
  }
  if (backend === SIMULATED_BACKEND) return 'and this worker simulates none; start it with --simulated-gpus, or write kind: KIND_CPU';
  if (inventory.simulated) return 'and those of this worker are simulated, which runs simulated models alone; write kind: KIND_CPU';
  return `and this worker has none that ONNX Runtime can use: ${inventory.absence}; run it from the image for GPUs on a machine with one, or write kind: KIND_CPU`;
}

/** One sentence. */
export function describeNoTensorRt(model: string): string {
  return `optimization.execution_accelerators of model '${model}' names 'tensorrt', and ONNX Runtime has no TensorRT provider library here (${providerFile('tensorrt')}); take it out to run with CUDA alone`;
}
