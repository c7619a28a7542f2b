/** What a worker tells whoever counts: instances that were replaced, and the memory they take. */

/**
 * Why an instance was replaced:
 * - `exited`: its host ended by itself or was killed from outside
 * - `hung`: a run, load or unload took longer than its limit
 * - `unresponsive`: its host was idle and did not answer a ping, or did not begin a batch in time
 * - `memory`: its host had grown too much; the replacement came first
 * - `slow`: its runs kept others waiting in a shared host; the replacement came first
 */
export type RestartReason = 'exited' | 'hung' | 'unresponsive' | 'memory' | 'slow';

export const RESTART_REASONS: readonly RestartReason[] = ['exited', 'hung', 'unresponsive', 'memory', 'slow'];

export interface InstanceRestart {
  readonly model: string;
  readonly version: string;
  readonly instance: string;
  readonly reason: RestartReason;
}

export interface WorkerObserver {
  /** Called when an instance falls (not again for each failed attempt to bring it back), or has moved. */
  onInstanceRestart(restart: InstanceRestart): void;
}

export interface InstanceMemory {
  readonly model: string;
  readonly version: string;
  readonly instance: string;
  /** Resident bytes of its host at the last look, seconds ago; an equal share of them where instances share a host. */
  readonly residentBytes: number;
}
