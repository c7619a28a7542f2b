/**
 * What a model configuration asks of ONNX Runtime, as session options. The names and defaults are those of Triton's
 * onnxruntime backend, except the thread counts: 1 and 1, because on few cores one instance per core is faster and
 * leaves no idle thread spinning. A field that would change where or how a model runs and is not served is refused; a
 * hint that changes nothing but speed is accepted with a warning.
 */
import { ServingError } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { GpuProvider } from '../gpu/provider-libraries.js';
import type { SessionOptions } from '../host-protocol/messages.js';
import { CUDA_PARAMETERS, gpuOptions, unusedAccelerators } from './gpu-options.js';

export interface OnnxOptions {
  readonly options: SessionOptions;
  /** Those of instances on a GPU, in this order; none without `onGpu`. */
  readonly gpuProviders: readonly GpuProvider[];
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

/** A hint that only other bindings of the runtime can use. */
const SHRINKAGE = 'memory.enable_memory_arena_shrinkage';

/** One thing about the options, and the field it is about. */
export interface OptionRemark {
  /** Path from the root of the configuration, e.g. `parameters["intra_op_thread_count"]`. */
  readonly path: string;
  readonly message: string;
}

/** What {@link onnxOptions} would refuse and remark, all of it, for those who only want to know. */
export function judgeOnnxOptions(
  config: ModelConfig,
  onGpu = false,
): {
  readonly issues: readonly OptionRemark[];
  readonly warnings: readonly OptionRemark[];
} {
  const { issues, warnings } = new OptionReader(config, onGpu).read();
  return { issues, warnings };
}

/**
 * @param onGpu some instance of it runs on a GPU
 * @throws ServingError INVALID_ARGUMENT naming each field, what it may be and what it is
 */
export function onnxOptions(config: ModelConfig, onGpu = false): OnnxOptions {
  const { options, gpuProviders, issues, warnings } = new OptionReader(config, onGpu).read();
  if (issues.length > 0) {
    const text = issues.map(({ message }) => message).join('; ');
    throw new ServingError('INVALID_ARGUMENT', text, { reason: 'unsupported_configuration' });
  }
  return { options, gpuProviders, warnings: warnings.map(({ message }) => message) };
}

class OptionReader {
  readonly #issues: OptionRemark[] = [];

  constructor(
    private readonly config: ModelConfig,
    private readonly onGpu: boolean,
  ) {}

  read(): Pick<OnnxOptions, 'options' | 'gpuProviders'> & { issues: readonly OptionRemark[]; warnings: readonly OptionRemark[] } {
    const { parameters } = this.config;
    this.#refuseCpuAccelerators();
    const extra: Record<string, string> = { 'session.intra_op.allow_spinning': '0', 'session.inter_op.allow_spinning': '0' };
    for (const name of SESSION_KEYS) {
      const value = parameters[name]?.stringValue;
      if (value !== undefined) extra[name] = value;
    }
    const options: SessionOptions = {
      intraOpNumThreads: this.#whole('intra_op_thread_count', 1, 1024),
      interOpNumThreads: this.#whole('inter_op_thread_count', 1, 1024),
      executionMode: this.#whole('execution_mode', 0, 1) === 1 ? 'parallel' : 'sequential',
      graphOptimizationLevel: this.#optimizationLevel(),
      enableCpuMemArena: this.#whole('enable_mem_arena', 1, 1) === 1,
      enableMemPattern: this.#whole('enable_mem_pattern', 1, 1) === 1,
      extra,
    };
    const gpu = this.onGpu ? gpuOptions(this.config) : undefined;
    this.#issues.push(...(gpu?.issues ?? []));
    const warnings = [
      ...this.#unused([SHRINKAGE], 'ONNX Runtime for Node ignores it'),
      ...(gpu?.warnings ?? [...this.#unused(CUDA_PARAMETERS, 'no instance runs on a GPU'), ...unusedAccelerators(this.config)]),
    ];
    return { options, gpuProviders: gpu?.providers ?? [], issues: this.#issues, warnings };
  }

  #unused(keys: readonly string[], why: string): OptionRemark[] {
    const { name: model, parameters } = this.config;
    return keys
      .filter((key) => key in parameters)
      .map((key) => ({ path: `parameters["${key}"]`, message: `parameter '${key}' of model '${model}' is not used: ${why}` }));
  }

  #optimizationLevel(): SessionOptions['graphOptimizationLevel'] {
    const level = this.config.optimization?.graph?.level ?? 0;
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
        this.#refuse(
          'optimization.graph.level',
          `optimization.graph.level of model '${this.config.name}' must be -1 (basic), 0 (all), 1 (extended) or 2 (disabled), got ${level}`,
        );
        return 'all';
    }
  }

  #refuseCpuAccelerators(): void {
    for (const { name } of this.config.optimization?.executionAccelerators?.cpuExecutionAccelerator ?? []) {
      this.#refuse(
        'optimization.execution_accelerators',
        `optimization.execution_accelerators of model '${this.config.name}' names '${name}' for the processor, where there is none; remove it to run on the plain CPU provider`,
      );
    }
  }

  #whole(name: string, fallback: number, limit: number): number {
    const text = this.config.parameters[name]?.stringValue;
    if (text === undefined) return fallback;
    const value = Number(text);
    if (/^\s*\d+\s*$/.test(text) && value <= limit) return value;
    this.#refuse(
      `parameters["${name}"]`,
      `parameter '${name}' of model '${this.config.name}' must be a whole number from 0 to ${limit}, got '${text}'`,
    );
    return fallback;
  }

  #refuse(path: string, message: string): void {
    this.#issues.push({ path, message });
  }
}
