/** What this process can execute on. ONNX models run on the processor alone, so that is what is announced. */
import { totalmem } from 'node:os';
import type { Device } from '@paceline/protocol';

/** The memory is that of the machine, or what a container may have of it. */
export function devicesOf(): readonly Device[] {
  const machineBytes = totalmem();
  const limitBytes = process.constrainedMemory();
  return [{ id: 'cpu', kind: 'cpu', memoryBytes: limitBytes > 0 ? Math.min(limitBytes, machineBytes) : machineBytes }];
}
