/**
 * The layout of the file that a worker and one of its hosts share for large tensors. It lies on a memory file system,
 * has no name (the worker unlinks it before the host starts) and is sparse: each slot owns a fixed range of offsets, so
 * nobody allocates, and memory is used only where bytes were written. Both sides use pread and pwrite.
 *
 * A slot belongs to one batch between its execute and its result: the worker writes the input region before it sends
 * execute, the host writes the output region before it sends result, the worker has read it when it gives the slot on.
 * Offset 0 holds the status record, written by the host just before it runs a batch and read by the worker when the
 * host is dead or late: u32 sequence of the execute, u32 1.
 */
export const STATUS_BYTES = 8;
const FIRST_REGION = 4096;

/** Size of one region, and so the most tensor bytes one direction of a batch may bring through the file. */
export const REGION_BYTES = 256 * 1024 * 1024;

/** Below this many tensor bytes in one direction the socket is cheaper. */
export const SHM_THRESHOLD_BYTES = 128 * 1024;

export function inputRegion(slot: number): number {
  return FIRST_REGION + 2 * slot * REGION_BYTES;
}

export function outputRegion(slot: number): number {
  return inputRegion(slot) + REGION_BYTES;
}
