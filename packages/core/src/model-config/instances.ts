/**
 * Which instances a worker starts for a model, and on which of its devices: Triton's rules over what the worker has. A
 * group of KIND_GPU has its count on each GPU that it lists, on all of them where it lists none; KIND_AUTO is the same
 * where there is a GPU and KIND_CPU where there is none; KIND_MODEL leaves the choice to the backend, and ONNX Runtime
 * chooses the processor. Invariant: no two instances of a model have one name.
 */
import { ModelInstanceGroup_Kind as Kind, type ModelConfig, type ModelInstanceGroup } from '@paceline/protocol/model-config';

export interface PlannedInstance {
  /** `<group>_<n>`, counted over all devices of the group. */
  readonly name: string;
  /** `cpu`, or `gpu:0`. */
  readonly device: string;
}

/** A GPU that a group asks for and that is not there. */
export interface MissingGpu {
  /** Position of the group in the configuration. */
  readonly index: number;
  readonly group: string;
  /** undefined = any. */
  readonly gpu: number | undefined;
}

export interface InstanceDevices {
  /** Numbers of the GPUs that the model can run on. */
  readonly gpus: readonly number[];
  /** Instances of a group without a count that runs on the processor. */
  readonly cpuInstanceCount: number;
}

export interface InstancePlan {
  readonly instances: readonly PlannedInstance[];
  /** Not empty: the model cannot run here, and `instances` is only what could. */
  readonly missing: readonly MissingGpu[];
}

/** Device of every instance that stands on no GPU. */
export const CPU_DEVICE = 'cpu';

export const gpuDevice = (index: number): string => `gpu:${index}`;

/** Number of a GPU, e.g. 1 of `gpu:1`; undefined for any other device. */
export function gpuOf(device: string): number | undefined {
  return device.startsWith('gpu:') ? Number(device.slice(4)) : undefined;
}

/** @param config normalised; a group without a name is named after the model and its place */
export function planInstances(config: ModelConfig, devices: InstanceDevices): InstancePlan {
  const instances: PlannedInstance[] = [];
  const missing: MissingGpu[] = [];
  config.instanceGroup.forEach((group, index) => {
    const name = group.name || `${config.name}_${index}`;
    const gpus = gpusOf(group, devices.gpus);
    if (gpus !== undefined) {
      if (gpus.length === 0) missing.push({ index, group: name, gpu: undefined });
      for (const gpu of new Set(gpus)) if (!devices.gpus.includes(gpu)) missing.push({ index, group: name, gpu });
    }
    const on = gpus?.map(gpuDevice) ?? [CPU_DEVICE];
    const count = group.count >= 1 ? group.count : gpus !== undefined || group.kind === Kind.MODEL ? 1 : devices.cpuInstanceCount;
    for (let n = 0; n < count * on.length; n++) instances.push({ name: `${name}_${n}`, device: on[n % on.length]! });
  });
  if (config.instanceGroup.length === 0) instances.push({ name: `${config.name}_0`, device: CPU_DEVICE });
  return { instances, missing };
}

/** undefined = the group runs on the processor. */
function gpusOf({ kind, gpus }: ModelInstanceGroup, present: readonly number[]): readonly number[] | undefined {
  if (kind === Kind.GPU || (kind === Kind.AUTO && gpus.length > 0)) return gpus.length > 0 ? gpus : present;
  return kind === Kind.AUTO && present.length > 0 ? present : undefined;
}

/** GPUs of a worker that a load uses, whether or not it asks for one by name. */
export function gpusUsed(config: ModelConfig, present: readonly number[]): number[] {
  const used = config.instanceGroup.flatMap((group) => gpusOf(group, present) ?? []);
  return [...new Set(used)].sort((a, b) => a - b);
}

/** Whether an instance, by its local name, is up but takes no requests. */
export function isPassive(config: ModelConfig, instance: string): boolean {
  return config.instanceGroup.some(
    ({ passive, name }) => passive && instance.startsWith(`${name}_`) && /^\d+$/.test(instance.slice(name.length + 1)),
  );
}
