/** What this process can execute on, as others in a cluster hear of it: its processor and the GPUs that models may use. */
import { totalmem } from 'node:os';
import { CPU_DEVICE } from '@paceline/core';
import type { Device } from '@paceline/protocol';
import { gpuDevices, type GpuInventory } from '../gpu/gpus.js';

/** The processor's memory is that of the machine, or what a container may have of it. */
export function devicesOf(gpus: GpuInventory): readonly Device[] {
  const machineBytes = totalmem();
  const limitBytes = process.constrainedMemory();
  return [
    { id: CPU_DEVICE, kind: 'cpu', memoryBytes: limitBytes > 0 ? Math.min(limitBytes, machineBytes) : machineBytes },
    ...gpuDevices(gpus),
  ];
}
