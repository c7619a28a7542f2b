/**
 * The GPUs of this worker as its models see them. Their numbers are those of CUDA: what `CUDA_VISIBLE_DEVICES` leaves, counted
 * from 0 in the order of the bus. Invariant: simulated GPUs serve simulated models alone, real ones ONNX Runtime alone.
 */
import { gpuDevice, SIMULATED_BACKEND } from '@paceline/core';
import type { Device } from '@paceline/protocol';

export interface Gpu {
  /** CUDA's number. */
  readonly index: number;
  /** 0 = not known. */
  readonly memoryBytes: number;
  /** As NVIDIA calls it. */
  readonly name: string;
}

export interface GpuInventory {
  readonly gpus: readonly Gpu[];
  readonly simulated: boolean;
  /** Why there is none, as a clause; '' where there are some. */
  readonly absence: string;
  /** ONNX Runtime has its TensorRT provider too. */
  readonly tensorRt: boolean;
}

/** Of a worker that did not look. */
export const NO_GPUS: GpuInventory = { gpus: [], simulated: false, absence: 'GPUs were not looked for', tensorRt: false };

/** @param count from 0 */
export function simulatedGpus(count: number): GpuInventory {
  const gpus = Array.from({ length: count }, (_, index) => ({ index, memoryBytes: 0, name: 'simulated' }));
  return { gpus, simulated: true, absence: '', tensorRt: false };
}

/** Numbers of the GPUs that models of that backend can run on. */
export function gpusFor({ gpus, simulated }: GpuInventory, backend: string): readonly number[] {
  return (backend === SIMULATED_BACKEND) === simulated ? gpus.map(({ index }) => index) : [];
}

/** As others in a cluster hear of them. */
export function gpuDevices({ gpus }: GpuInventory): readonly Device[] {
  return gpus.map(({ index, memoryBytes }) => ({ id: gpuDevice(index), kind: 'gpu', memoryBytes }));
}
