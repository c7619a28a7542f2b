/**
 * Asks every worker what it runs of one partition that is being taken over, so that nothing of it runs twice. Owns how long
 * the takeover waits: for each worker that membership names, connected yet or not, but never longer than a second in all.
 * A worker that answers later is heard all the same: what waits here by then, and runs there, is left to it.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { RemoteWorker } from '@paceline/worker-rpc';
import type { WorkerRegistry } from '../workers/worker-registry.js';
import type { HeldPartition } from './held-partition.js';
import type { LeaseKeeper } from './lease-keeper.js';

export interface ClaimsPorts {
  readonly clock: Clock;
  readonly workers: WorkerRegistry;
  readonly keeper: () => LeaseKeeper;
}

/** A connected worker that does not answer within this time is as good as gone, and must not hold the others up. */
const ANSWER_LIMIT_US = 300_000;
/** One that is not connected yet has so long for both: it may have started just now, or be gone without anybody knowing. */
const CONNECT_LIMIT_US = 1_000_000;

export class Claims {
  /** Workers that were not connected when the takeover began, and what to call when one has been heard. */
  readonly #missing = new Map<string, () => void>();

  constructor(
    readonly held: HeldPartition,
    private readonly ports: ClaimsPorts,
  ) {}

  /** Resolves when each has answered or has had its time. */
  async askAll(): Promise<void> {
    const { clock, workers } = this.ports;
    const heard = [...workers.named()].map(({ worker, remote, up }) =>
      up
        ? within(clock, ANSWER_LIMIT_US, this.ask(remote))
        : within(clock, CONNECT_LIMIT_US, new Promise<void>((resolve) => this.#missing.set(worker, resolve))),
    );
    await Promise.all(heard);
    this.#missing.clear();
  }

  /** Resolves when the worker has answered or is gone. Never rejects. */
  async ask(remote: RemoteWorker): Promise<void> {
    const { partition, epoch } = this.held;
    try {
      const claimed = await remote.claim(partition, epoch);
      if (claimed.ok) this.held.onRunning(remote.worker, claimed.running);
      else {
        const keeper = this.ports.keeper();
        keeper.noteEpoch(partition, claimed.highest.number);
        await keeper.contest(partition, epoch);
      }
    } catch {
      // It is gone; if it comes back it is asked again.
    }
    this.#missing.get(remote.worker)?.();
  }
}

/** Resolves with `done`, or when the limit is over. */
async function within(clock: Clock, limitUs: number, done: Promise<void>): Promise<void> {
  let limit: Timer | undefined;
  const over = new Promise<void>((resolve) => {
    limit = clock.setTimer(limitUs, resolve);
  });
  await Promise.race([done, over]);
  limit?.cancel();
}
