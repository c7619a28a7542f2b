/**
 * What a model configuration asks of ONNX Runtime's providers for NVIDIA GPUs. The binding for Node hands over the number of
 * the GPU and nothing else, so what would change answers or bound memory is refused by name, and what only changes speed
 * is remarked.
 */
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { GpuProvider } from '../gpu/provider-libraries.js';
import type { OptionRemark } from './session-options.js';

/** Hints for the CUDA provider. */
const SPEED_HINTS = ['cudnn_conv_algo_search', 'cudnn_conv_use_max_workspace', 'arena_extend_strategy', 'do_copy_in_default_stream'];
const MEMORY_LIMIT = 'gpu_mem_limit';

/** Parameters that mean something on a GPU alone. */
export const CUDA_PARAMETERS: readonly string[] = [...SPEED_HINTS, MEMORY_LIMIT];

const ACCELERATORS = 'optimization.execution_accelerators.gpu_execution_accelerator';

export interface GpuOptions {
  /** In the order in which they get a say; the processor's provider comes after them by itself. */
  readonly providers: readonly GpuProvider[];
  readonly issues: readonly OptionRemark[];
  readonly warnings: readonly OptionRemark[];
}

/** Of a model with an instance on a GPU. */
export function gpuOptions(config: ModelConfig): GpuOptions {
  const { name: model, parameters } = config;
  const issues: OptionRemark[] = [];
  const limit = parameters[MEMORY_LIMIT]?.stringValue;
  if (limit !== undefined) {
    const message = `parameter '${MEMORY_LIMIT}' of model '${model}' is '${limit}', and ONNX Runtime for Node cannot bound the memory of a GPU; take it out`;
    issues.push({ path: `parameters["${MEMORY_LIMIT}"]`, message });
  }
  const warnings = SPEED_HINTS.filter((key) => key in parameters).map((key) => ({
    path: `parameters["${key}"]`,
    message: `parameter '${key}' of model '${model}' is not used: ONNX Runtime for Node does not hand it to the CUDA provider`,
  }));
  const accelerators = config.optimization?.executionAccelerators?.gpuExecutionAccelerator ?? [];
  accelerators.forEach(({ name, parameters: own }, i) => {
    const path = `${ACCELERATORS}[${i}]`;
    if (name !== 'tensorrt') {
      issues.push({ path, message: `${path} of model '${model}' names '${name}'; on a GPU there is 'tensorrt' and nothing else` });
      return;
    }
    for (const [key, value] of Object.entries(own)) {
      if (key === 'precision_mode' && value === 'FP32') continue;
      const message = `${path} of model '${model}' sets ${key} to '${value}', which ONNX Runtime for Node does not hand to TensorRT; take it out`;
      issues.push({ path: `${path}.parameters["${key}"]`, message });
    }
  });
  return { providers: accelerators.some(({ name }) => name === 'tensorrt') ? ['tensorrt', 'cuda'] : ['cuda'], issues, warnings };
}

/** Of a model without one. */
export function unusedAccelerators(config: ModelConfig): OptionRemark[] {
  const accelerators = config.optimization?.executionAccelerators?.gpuExecutionAccelerator ?? [];
  return accelerators.map(({ name }, i) => ({
    path: `${ACCELERATORS}[${i}]`,
    message: `${ACCELERATORS}[${i}] of model '${config.name}' names '${name}', which is not used: no instance runs on a GPU`,
  }));
}
