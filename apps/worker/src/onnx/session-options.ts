/**
 * What a model configuration asks of ONNX Runtime, as session options. The names and defaults are those of Triton's
 * onnxruntime backend, except the thread counts: 1 and 1, because on few cores one instance per core is faster and
 * leaves no idle thread spinning. A field that would change where or how a model runs and is not served is refused; a
 * hint that changes nothing but speed is accepted with a warning.
 */
import { ServingError } from '@paceline/protocol';
import { ModelInstanceGroup_Kind, type ModelConfig } from '@paceline/protocol/model-config';
import type { SessionOptions } from '../host-protocol/messages.js';

export interface OnnxOptions {
  readonly options: SessionOptions;
  /** Accepted hints that are not used, one sentence each. */
  readonly warnings: readonly string[];
}

/** Keys of parameters that are handed to the session as they are. */
const SESSION_KEYS = new Set([
  'session.use_device_allocator_for_initializers',
  'session.disable_prepacking',
  'session.set_denormal_as_zero',
  'session.use_deterministic_compute',
  'session.enable_quant_qdq_cleanup',
  'session.disable_quant_qdq',
  'session.qdq_matmulnbits_accuracy_level',
  'optimization.enable_gelu_approximation',
  'optimization.disable_specified_optimizers',
]);

/** Hints that only other devices or other bindings of the runtime can use. */
const UNUSED_HINTS = new Set([
  'memory.enable_memory_arena_shrinkage',
  'cudnn_conv_algo_search',
  'cudnn_conv_use_max_workspace',
  'gpu_mem_limit',
  'arena_extend_strategy',
  'do_copy_in_default_stream',
]);

/** @throws ServingError INVALID_ARGUMENT naming the field, what it may be and what it is */
export function onnxOptions(config: ModelConfig): OnnxOptions {
  refuseOtherDevices(config);
  const parameter = (name: string) => config.parameters[name]?.stringValue;
  const warnings = Object.keys(config.parameters)
    .filter((name) => UNUSED_HINTS.has(name))
    .map((name) => `parameter '${name}' of model '${config.name}' is not used by the CPU instances served here`);
  const extra: Record<string, string> = { 'session.intra_op.allow_spinning': '0', 'session.inter_op.allow_spinning': '0' };
  for (const name of SESSION_KEYS) {
    const value = parameter(name);
    if (value !== undefined) extra[name] = value;
  }
  const whole = (name: string, fallback: number, limit: number) => wholeNumber(config.name, name, parameter(name), fallback, limit);
  return {
    options: {
      intraOpNumThreads: whole('intra_op_thread_count', 1, 1024),
      interOpNumThreads: whole('inter_op_thread_count', 1, 1024),
      executionMode: whole('execution_mode', 0, 1) === 1 ? 'parallel' : 'sequential',
      graphOptimizationLevel: optimizationLevel(config),
      enableCpuMemArena: whole('enable_mem_arena', 1, 1) === 1,
      enableMemPattern: whole('enable_mem_pattern', 1, 1) === 1,
      extra,
    },
    warnings,
  };
}

function optimizationLevel(config: ModelConfig): SessionOptions['graphOptimizationLevel'] {
  const level = config.optimization?.graph?.level ?? 0;
  switch (level) {
    case -1:
      return 'basic';
    case 0:
      return 'all';
    case 1:
      return 'extended';
    case 2:
      return 'disabled';
    default:
      throw invalid(
        `optimization.graph.level of model '${config.name}' must be -1 (basic), 0 (all), 1 (extended) or 2 (disabled), got ${level}`,
      );
  }
}

function refuseOtherDevices(config: ModelConfig): void {
  for (const group of config.instanceGroup) {
    if (group.kind === ModelInstanceGroup_Kind.GPU || group.gpus.length > 0) {
      throw invalid(
        `instance group '${group.name}' of model '${config.name}' asks for a GPU, but this server runs ONNX models on the CPU; use kind: KIND_CPU`,
      );
    }
  }
  const accelerators = config.optimization?.executionAccelerators;
  for (const accelerator of [...(accelerators?.gpuExecutionAccelerator ?? []), ...(accelerators?.cpuExecutionAccelerator ?? [])]) {
    throw invalid(
      `optimization.execution_accelerators of model '${config.name}' names '${accelerator.name}', which this server does not have; remove it to run on the plain CPU provider`,
    );
  }
}

function wholeNumber(model: string, name: string, text: string | undefined, fallback: number, limit: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!/^\s*\d+\s*$/.test(text) || value > limit) {
    throw invalid(`parameter '${name}' of model '${model}' must be a whole number from 0 to ${limit}, got '${text}'`);
  }
  return value;
}

function invalid(message: string): ServingError {
  return new ServingError('INVALID_ARGUMENT', message, { reason: 'unsupported_configuration' });
}
