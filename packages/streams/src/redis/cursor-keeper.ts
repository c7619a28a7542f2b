/**
 * Tells Redis how far a partition was read, and has it remove what was read. Seldom, since a cursor that lags makes a new
 * owner only read again what gateways would send again anyway: one report at a time, some milliseconds apart.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { PartitionKeys, RedisConnection } from '@paceline/redis';
import { idAfter } from './stream-id.js';
import { ADVANCE } from './stream-scripts.js';

const INTERVAL_US = 50_000;

export interface CursorKeeperPorts {
  readonly clock: Clock;
  readonly redis: RedisConnection;
  readonly keys: PartitionKeys;
  /** Who holds the lease. */
  readonly owner: string;
  /** Redis says that another process, or nobody, holds the lease. */
  readonly onNotOwner: () => void;
}

export class CursorKeeper {
  #reported: string;
  #timer: Timer | undefined;
  #reporting: Promise<void> | undefined;

  constructor(
    private readonly ports: CursorKeeperPorts,
    /** Everything up to here was read. */
    public cursor: string,
  ) {
    this.#reported = cursor;
  }

  advance(cursor: string): void {
    this.cursor = cursor;
    this.#timer ??= this.ports.clock.setTimer(INTERVAL_US, () => this.#onTimer());
  }

  /** Reports what is left to report. Never rejects: without Redis the next owner reads a little more. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#reporting;
    if (this.#reported !== this.cursor) await this.#report();
  }

  #onTimer(): void {
    this.#timer = undefined;
    if (this.#reporting || this.#reported === this.cursor) return;
    this.#reporting = this.#report().finally(() => {
      this.#reporting = undefined;
      if (this.#reported !== this.cursor) this.advance(this.cursor);
    });
  }

  async #report(): Promise<void> {
    const { redis, keys, owner, onNotOwner } = this.ports;
    const { cursor } = this;
    const reply = await redis.run(ADVANCE, [keys.owner, keys.state, keys.in], [owner, cursor, idAfter(cursor)]).catch(() => undefined);
    if (reply === 1) this.#reported = cursor;
    else if (reply === 0) onNotOwner();
  }
}
