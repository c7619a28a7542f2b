/**
 * The scheduler's end of one partition's stream. Reads on a connection of its own from the cursor on, hands every request
 * to the intake, and goes on through whatever happens to Redis. Invariant: an entry is handed over before the cursor
 * passes it, and a cursor beyond what the stream holds is never waited for.
 */
import type { Clock } from '@paceline/clock';
import { timeoutAfter, type Envelope } from '@paceline/protocol';
import { readEntry, WireFormatError } from '@paceline/protocol/wire';
import { redisError, RedisTime, type PartitionKeys, type RedisConnection } from '@paceline/redis';
import type { RequestIntake } from '../ports.js';
import { CursorKeeper } from './cursor-keeper.js';
import { compareIds, FIRST_CURSOR } from './stream-id.js';
import { entriesOf, type StreamEntry } from './stream-reply.js';
import { LAST_ID, SET_ASIDE } from './stream-scripts.js';

export interface PartitionReaderOptions {
  readonly clock: Clock;
  /** Shared; reading has a connection of its own, made from it. */
  readonly redis: RedisConnection;
  readonly keys: PartitionKeys;
  /** Under which the lease of the partition is held. */
  readonly owner: string;
  readonly intake: RequestIntake;
  /** Told once when reading begins to fail, once when it works again, and of each entry that was set aside. */
  readonly onProblem?: (text: string) => void;
  /** Counts along, e.g. over all partitions of a process. */
  readonly counters?: PartitionReaderCounters;
  /** Longest wait in Redis for the next entry, milliseconds; also how soon a stream that was emptied is noticed. Default 2000. */
  readonly blockMs?: number;
}

export interface PartitionReaderCounters {
  entries: number;
  requests: number;
  /** Entries that were set aside. */
  undecodable: number;
}

const ENTRIES_PER_READ = 32;
const DEAD_ENTRIES = 1000;
/** Of an entry that is set aside so much is kept: it is for looking at. */
const DEAD_BYTES = 16 * 1024;
const RETRY_US = 50_000;
/** Rather than to believe that an entry lay for so long, the time is asked for again: the clock of Redis may have been set. */
const DOUBTFUL_DWELL_US = 1_000_000;
/** A connection that is not there yet is no problem for so long. */
const CONNECT_GRACE_US = 2_000_000;

export class PartitionReader {
  readonly counters: PartitionReaderCounters;
  readonly #time: RedisTime;
  readonly #blocking: RedisConnection;
  readonly #blockMs: number;
  #cursor: CursorKeeper | undefined;
  #reading: Promise<void> = Promise.resolve();
  #stopped = false;
  #failing = false;
  #wake: (() => void) | undefined;

  constructor(private readonly options: PartitionReaderOptions) {
    const { redis, keys, clock } = options;
    this.counters = options.counters ?? { entries: 0, requests: 0, undecodable: 0 };
    this.#blockMs = options.blockMs ?? 2000;
    this.#time = new RedisTime(redis, keys.in, clock);
    this.#blocking = redis.blocking('paceline-intake', this.#blockMs);
  }

  /** Where the next owner would begin. */
  get cursor(): string {
    return this.#cursor?.cursor ?? FIRST_CURSOR;
  }

  /** Begins to read; to be called once. */
  start({ cursor }: { readonly cursor: string }): void {
    const { clock, redis, keys, owner } = this.options;
    this.#cursor = new CursorKeeper({ clock, redis, keys, owner, onNotOwner: () => this.#end() }, cursor);
    this.#blocking.onChange(() => this.#wake?.());
    this.#reading = this.#read(this.#cursor);
  }

  /** Resolves once nothing more is handed over and the cursor, as far as Redis can be reached, is in the lease. Never rejects. */
  async stop(): Promise<void> {
    this.#end();
    await this.#reading;
    await this.#cursor?.stop();
    this.#time.close();
  }

  #end(): void {
    this.#stopped = true;
    this.#blocking.close();
    this.#wake?.();
  }

  async #read(cursor: CursorKeeper): Promise<void> {
    const graceUs = this.options.clock.nowUs() + CONNECT_GRACE_US;
    while (!this.#stopped && !this.#blocking.up && this.options.clock.nowUs() < graceUs) await this.#pause();
    // What lay there since the last owner stopped is the oldest of all: its age must be known.
    await this.#time.refresh();
    let checked = false;
    while (!this.#stopped) {
      try {
        if (!checked) await this.#checkCursor(cursor);
        checked = true;
        const entries = await this.#next(cursor.cursor);
        const [first] = entries;
        if (first && this.#time.dwellUs(first.id) > DOUBTFUL_DWELL_US) await this.#time.refresh();
        if (this.#stopped) return;
        this.#setFailing(undefined);
        for (const entry of entries) this.#take(entry);
        const last = entries.at(-1);
        if (last) cursor.advance(last.id);
        else checked = false;
      } catch (error) {
        checked = false;
        if (this.#stopped) return;
        this.#setFailing(error);
        await this.#pause();
      }
    }
  }

  async #next(cursor: string): Promise<readonly StreamEntry[]> {
    const args = ['COUNT', ENTRIES_PER_READ, 'BLOCK', this.#blockMs, 'STREAMS', this.options.keys.in, cursor];
    return entriesOf(await this.#blocking.commandBuffer('XREAD', ...args));
  }

  /** A Redis that lost its data, or a replica that was behind, numbers entries anew: those are read from their beginning. */
  async #checkCursor(cursor: CursorKeeper): Promise<void> {
    const last = await this.options.redis.run(LAST_ID, [this.options.keys.in], []);
    if (compareIds(String(last), cursor.cursor) < 0) cursor.cursor = FIRST_CURSOR;
  }

  #take({ id, bytes }: StreamEntry): void {
    this.counters.entries++;
    let envelopes: readonly Envelope[];
    try {
      envelopes = readEntry(bytes ?? new Uint8Array(0));
    } catch (error) {
      if (!(error instanceof WireFormatError)) throw error;
      this.#setAside(id, bytes, bytes ? error.message : 'the entry has other fields than it should have');
      return;
    }
    this.counters.requests += envelopes.length;
    const dwellUs = Math.floor(this.#time.dwellUs(id));
    for (const envelope of envelopes) this.#hand(envelope, dwellUs);
  }

  /** @param envelope this reader's own: it is changed, not copied */
  #hand(envelope: Envelope, dwellUs: number): void {
    if (dwellUs > 0) {
      const times: { timeoutUs: number; remainingUs?: number } = envelope;
      times.timeoutUs = timeoutAfter(times.timeoutUs, dwellUs);
      if (times.remainingUs !== undefined) times.remainingUs = Math.max(0, times.remainingUs - dwellUs);
    }
    try {
      this.options.intake.onEnvelope(envelope);
    } catch (error) {
      this.options.onProblem?.(`a request could not be taken in: ${String(error)}`);
    }
  }

  #setAside(id: string, bytes: Buffer | undefined, reason: string): void {
    this.counters.undecodable++;
    const { redis, keys, onProblem } = this.options;
    const kept = (bytes ?? Buffer.alloc(0)).subarray(0, DEAD_BYTES);
    redis.run(SET_ASIDE, [keys.dead], [DEAD_ENTRIES, id, reason, bytes?.length ?? 0, kept]).catch(() => undefined);
    onProblem?.(`entry ${id} of ${keys.in} cannot be decoded and was set aside in ${keys.dead}: ${reason}`);
  }

  #setFailing(error: unknown): void {
    const failing = error !== undefined;
    if (failing === this.#failing) return;
    this.#failing = failing;
    const { onProblem, keys } = this.options;
    if (failing) onProblem?.(`${keys.in} cannot be read: ${redisError(error).message}`);
    else onProblem?.(`${keys.in} is read again`);
  }

  /** Until the connection changes, or a moment has passed. */
  async #pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.options.clock.setTimer(RETRY_US, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#wake = undefined;
  }
}
