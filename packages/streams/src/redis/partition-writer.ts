/**
 * Writes the requests of one partition into its stream: one entry for what came in a turn of the event loop, or, while
 * an entry is under way, for what came until it arrived. Nothing is lost while Redis is away or full: what could not be written waits and is tried again, later after each failure.
 * Invariant: a request is in `waiting`, in an entry under way, or with Redis. One whose entry failed may have arrived all
 * the same; the lanes drop what they have seen.
 */
import type { Clock, Timer } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';
import type { RedisConnection } from '@paceline/redis';
import { packEntry, type PackedEntry } from './entry-packer.js';
import type { Unanswered } from './unanswered.js';

/** The one field of an entry. */
export const ENTRY_FIELD = 'e';
/**
 * About how many entries a stream keeps when nobody reads it. What is dropped is not lost: whoever takes the partition
 * over has the gateways send again.
 */
const MAX_STREAM_ENTRIES = 16_384;
/** Entries under way at a time; beyond it a slow Redis gets fewer and fuller ones. */
const MAX_UNDER_WAY = 32;
/** Fewer requests than these wait for the entries that are under way: an entry costs everybody who handles it, however small. */
const WORTH_AN_ENTRY = 32;
const FIRST_RETRY_US = 10_000;
const LAST_RETRY_US = 500_000;

export interface PartitionWriterPorts {
  readonly clock: Clock;
  readonly redis: Pick<RedisConnection, 'command'>;
  readonly onWritten: (requests: readonly Unanswered[]) => void;
  /** An entry failed; its requests wait again. */
  readonly onFailed: (error: ServingError, requests: readonly Unanswered[]) => void;
  /** Writing works again after failures other than a full Redis: what was written before them may be gone. */
  readonly onDoubt: () => void;
}

export class PartitionWriter {
  #waiting = new Set<Unanswered>();
  /** Requests of the entries that Redis has not confirmed, by number. */
  readonly #underWay = new Map<number, readonly Unanswered[]>();
  #nextEntry = 0;
  #armed: Timer | undefined;
  #retryUs = 0;
  #doubtful = false;
  #closed = false;

  constructor(
    private readonly key: string,
    private readonly ports: PartitionWriterPorts,
  ) {}

  /** Requests that no entry has been made of. */
  get waiting(): number {
    return this.#waiting.size;
  }

  add(request: Unanswered): void {
    request.stage = 'waiting';
    this.#waiting.add(request);
    if (!this.#armed && this.#mayWrite) this.#arm();
  }

  /** It is not wanted any more; no-op where it does not wait. */
  remove(request: Unanswered): void {
    this.#waiting.delete(request);
  }

  /** Redis is there again: no more waiting for the next try. Whoever calls sends again what was written before. */
  onRedisUp(): void {
    this.#doubtful = false;
    if (this.#waiting.size === 0) return;
    this.#armed?.cancel();
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    this.#armed?.cancel();
    this.#waiting.clear();
  }

  /** After a failure one entry shows whether Redis works again. */
  get #mayWrite(): boolean {
    if (this.#underWay.size === 0) return true;
    return this.#retryUs === 0 && this.#underWay.size < MAX_UNDER_WAY && this.#waiting.size >= WORTH_AN_ENTRY;
  }

  #arm(): void {
    this.#armed = this.ports.clock.setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#armed = undefined;
    while (this.#waiting.size > 0 && this.#mayWrite) {
      const entry = packEntry(this.#waiting, this.ports.clock.nowUs());
      for (const request of entry.requests) {
        this.#waiting.delete(request);
        request.stage = 'writing';
        request.handedOver = true;
      }
      this.#write(entry);
    }
  };

  // What waits for Redis knows an entry by its number only: promises and commands outlive their use by many requests, and
  // would carry all of them into the old generation.
  #write({ bytes, requests }: PackedEntry): void {
    const id = this.#nextEntry++;
    this.#underWay.set(id, requests);
    this.ports.redis.command('XADD', this.key, 'MAXLEN', '~', MAX_STREAM_ENTRIES, '*', ENTRY_FIELD, bytes).then(
      () => this.#onWritten(this.#take(id)),
      (error: unknown) => this.#onFailed(this.#take(id), error),
    );
  }

  #take(id: number): readonly Unanswered[] {
    const requests = this.#underWay.get(id) as readonly Unanswered[];
    this.#underWay.delete(id);
    return requests;
  }

  #onWritten(requests: readonly Unanswered[]): void {
    if (this.#closed) return;
    this.#retryUs = 0;
    // One that waits once more, because its worker was lost meanwhile, goes on waiting.
    for (const request of requests) if (request.stage === 'writing') request.stage = 'written';
    this.ports.onWritten(requests);
    if (this.#doubtful) {
      this.#doubtful = false;
      this.ports.onDoubt();
    }
    if (this.#waiting.size > 0 && !this.#armed && this.#mayWrite) this.#arm();
  }

  #onFailed(requests: readonly Unanswered[], thrown: unknown): void {
    if (this.#closed) return;
    const error = thrown instanceof ServingError ? thrown : new ServingError('INTERNAL', String(thrown), { cause: thrown });
    if (error.reason !== 'redis_full') this.#doubtful = true;
    const again = requests.filter(({ done, stage }) => !done && stage === 'writing');
    for (const request of again) request.stage = 'waiting';
    this.#waiting = new Set([...again, ...this.#waiting]);
    this.ports.onFailed(error, requests);
    // Entries that fail together count as one failure.
    if (this.#armed && this.#retryUs > 0) return;
    this.#armed?.cancel();
    this.#retryUs = Math.min(LAST_RETRY_US, Math.max(FIRST_RETRY_US, this.#retryUs * 2));
    this.#armed = this.ports.clock.setTimer(this.#retryUs, this.#flush);
  }
}
