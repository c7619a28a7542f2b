/**
 * Who runs a model, with which options and on which devices of this worker: the part of a load that differs between
 * backends.
 */
import { CPU_DEVICE, gpuOf, planInstances, simulatedAccelerator, type PlannedInstance } from '@paceline/core';
import { ServingError } from '@paceline/protocol';
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { LoadSpec } from '@paceline/worker-rpc';
import { gpusFor, type GpuInventory } from '../gpu/gpus.js';
import { describeMissing, describeNoTensorRt } from '../gpu/missing-gpus.js';
import type { LoadBackend, SessionOptions } from '../host-protocol/messages.js';
import { judgeOnnxOptions, onnxOptions, type OptionRemark } from '../onnx/session-options.js';

export interface ModelBackend {
  /** Accepted hints that are not used, one sentence each. */
  readonly warnings: readonly string[];
  /** Those to start, at least one. */
  readonly instances: readonly PlannedInstance[];
  /** Memory that each instance takes elsewhere than in its process, bytes. */
  readonly deviceMemoryBytes: number;
  /** Whether an instance may share its host with others: it must not stand for a device of its own. */
  readonly sociable: boolean;
  /**
   * @param loads how many instances of the model were loaded before; a simulation must not repeat itself after a crash
   * @param device of the instance, `cpu` or `gpu:0`
   */
  loadMessage(loads: number, device: string): LoadBackend;
}

/** What a worker starts instances on. */
export interface WorkerDevices {
  readonly gpus: GpuInventory;
  /** Instances of a group that states no count and runs on the processor. */
  readonly cpuInstanceCount: number;
}

/** Distance between the seeds of two loads: odd, so that all of 2^32 loads differ. */
const SEED_STEP = 0x9e37_79b9;

/** @throws ServingError INVALID_ARGUMENT naming each field that cannot be served, or each GPU that is not there */
export function modelBackend({ config, modelPath }: LoadSpec, devices: WorkerDevices): ModelBackend {
  const { instances, missing, onGpu } = placed(config, devices);
  if (missing.length > 0)
    throw new ServingError('INVALID_ARGUMENT', missing.map(({ message }) => message).join('; '), { reason: 'no_device' });
  const accelerator = simulatedAccelerator(config);
  if (accelerator === undefined) {
    const { options, gpuProviders, warnings } = onnxOptions(config, onGpu);
    return {
      warnings,
      instances,
      deviceMemoryBytes: 0,
      sociable: true,
      loadMessage: (_, device) => ({ backend: 'onnxruntime', modelPath, options: optionsOn(device, options, gpuProviders) }),
    };
  }
  const seed = accelerator.seed ?? Math.floor(Math.random() * 2 ** 32);
  return {
    warnings: [],
    instances,
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

function optionsOn(device: string, options: SessionOptions, providers: readonly ('cuda' | 'tensorrt')[]): SessionOptions {
  const deviceId = gpuOf(device);
  return deviceId === undefined ? options : { ...options, executionProviders: providers.map((name) => ({ name, deviceId })) };
}

/** Instances with what is not there for them, each with the field that asks for it. */
function placed(config: ModelConfig, { gpus, cpuInstanceCount }: WorkerDevices) {
  const simulated = simulatedAccelerator(config) !== undefined;
  const plan = planInstances(config, { gpus: gpusFor(gpus, config.backend), cpuInstanceCount: simulated ? 1 : cpuInstanceCount });
  const missing: OptionRemark[] = plan.missing.map((each) => ({
    path: `instance_group[${each.index}]`,
    message: describeMissing(each, config, gpus),
  }));
  const onGpu = plan.missing.length > 0 || plan.instances.some(({ device }) => device !== CPU_DEVICE);
  const tensorRt = config.optimization?.executionAccelerators?.gpuExecutionAccelerator.some(({ name }) => name === 'tensorrt');
  if (onGpu && !simulated && plan.missing.length === 0 && tensorRt === true && !gpus.tensorRt) {
    missing.push({ path: 'optimization.execution_accelerators', message: describeNoTensorRt(config.name) });
  }
  return { instances: plan.instances, missing, onGpu };
}

/** What {@link modelBackend} would refuse and remark, all of it, for those who only want to know. */
export function judgeBackendOptions(
  config: ModelConfig,
  devices: WorkerDevices,
): {
  /** Wrong wherever it is loaded. */
  readonly issues: readonly OptionRemark[];
  readonly warnings: readonly OptionRemark[];
  /** What keeps it from being loaded by a worker with these devices. */
  readonly missing: readonly OptionRemark[];
} {
  const { missing, onGpu } = placed(config, devices);
  const options = simulatedAccelerator(config) === undefined ? judgeOnnxOptions(config, onGpu) : { issues: [], warnings: [] };
  return { ...options, missing };
}
