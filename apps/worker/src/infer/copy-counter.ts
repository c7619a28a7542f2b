/** Tensor bytes that were copied in user space, per direction, by this process. Kernel copies do not count. */
export interface CopyCounter {
  inBytes: number;
  outBytes: number;
}
