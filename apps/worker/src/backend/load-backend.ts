/** Who runs a model and with which options: the part of a load that differs between backends. */
import { simulatedAccelerator } from '@paceline/core';
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { LoadSpec } from '@paceline/worker-rpc';
import type { LoadBackend } from '../host-protocol/messages.js';
import { judgeOnnxOptions, onnxOptions, type OptionRemark } from '../onnx/session-options.js';

export interface ModelBackend {
  /** Accepted hints that are not used, one sentence each. */
  readonly warnings: readonly string[];
  /** Memory that each instance takes elsewhere than in its process, bytes. */
  readonly deviceMemoryBytes: number;
  /** Whether an instance may share its host with others: it must not stand for a device of its own. */
  readonly sociable: boolean;
  /** @param loads how many instances of the model were loaded before; a simulation must not repeat itself after a crash */
  loadMessage(loads: number): LoadBackend;
}

/** Distance between the seeds of two loads: odd, so that all of 2^32 loads differ. */
const SEED_STEP = 0x9e37_79b9;

/** @throws ServingError INVALID_ARGUMENT naming each field that cannot be served */
export function modelBackend({ config, modelPath }: LoadSpec): ModelBackend {
  const accelerator = simulatedAccelerator(config);
  if (accelerator === undefined) {
    const { options, warnings } = onnxOptions(config);
    const message: LoadBackend = { backend: 'onnxruntime', modelPath, options };
    return { warnings, deviceMemoryBytes: 0, sociable: true, loadMessage: () => message };
  }
  const seed = accelerator.seed ?? Math.floor(Math.random() * 2 ** 32);
  return {
    warnings: [],
    deviceMemoryBytes: accelerator.memoryBytes,
    sociable: false,
    loadMessage: (loads) => ({
      backend: 'simulated',
      accelerator,
      batches: config.maxBatchSize > 0,
      seed: (seed + Math.imul(loads, SEED_STEP)) >>> 0,
    }),
  };
}

/** What {@link modelBackend} would refuse and remark, all of it, for those who only want to know. */
export function judgeBackendOptions(config: ModelConfig): {
  readonly issues: readonly OptionRemark[];
  readonly warnings: readonly OptionRemark[];
} {
  return simulatedAccelerator(config) === undefined ? judgeOnnxOptions(config) : { issues: [], warnings: [] };
}
