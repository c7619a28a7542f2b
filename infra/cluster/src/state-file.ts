/** The file that tells others which processes run where. Replaced whole, so that a reader never sees half of it. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';

export interface ClusterState {
  /** `pid` is null where Redis is somebody else's. */
  readonly redis: { readonly pid: number | null; readonly port: number };
  readonly gateways: readonly { readonly pid: number; readonly http: number; readonly grpc: number; readonly metrics: number }[];
  readonly schedulers: readonly { readonly pid: number; readonly metrics: number }[];
  readonly workers: readonly { readonly pid: number; readonly metrics: number }[];
}

/** @throws Error of the file system */
export function writeState(file: string, state: ClusterState): void {
  const fresh = `${file}.${process.pid}.tmp`;
  writeFileSync(fresh, `${JSON.stringify(state)}\n`);
  renameSync(fresh, file);
}

export function removeState(file: string): void {
  rmSync(file, { force: true });
}
