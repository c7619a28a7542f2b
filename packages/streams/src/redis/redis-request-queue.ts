/**
 * The gateway's end of the streams. Owns every request that the gateway has not answered: it hands them over through
 * Redis, and again whenever there is reason to think that they are lost, which the lanes make harmless by dropping what
 * they have seen. Invariant: a request leaves only by `forget` or `cancel`, or with the error that `onLost` answers.
 */
import type { Clock } from '@paceline/clock';
import type { Envelope, Epoch, ReplyFrame, RequestRef, ServingError } from '@paceline/protocol';
import { inputBytesOf } from '@paceline/protocol/wire';
import type { RedisConnection, RedisKeys } from '@paceline/redis';
import type { Tensor } from '@paceline/tensor';
import type { GatewayLinks } from '../link/ports.js';
import type { RequestQueue } from '../ports.js';
import { PartitionWriter } from './partition-writer.js';
import type { Unanswered } from './unanswered.js';

export interface RedisRequestQueueOptions {
  readonly clock: Clock;
  readonly redis: RedisConnection;
  readonly keys: RedisKeys;
  /** Inputs of a request that are larger than this, all together, stay here and are pulled by the worker. */
  readonly inlineBytes: number;
  /** The partition that takes the requests of a version now. */
  readonly partitionOf: (model: string, version: string) => number;
  /** Id of the scheduler that owns a partition and is connected; undefined = nobody is known to. */
  readonly ownerOf: (partition: number) => string | undefined;
  readonly links: Pick<GatewayLinks, 'tell' | 'schedulers'>;
  /** Where the error goes that ends a request which was lost too often. */
  readonly onFrame: (number: number, frame: ReplyFrame) => void;
  /** Told once when writing to Redis begins to fail, and once when it works again. */
  readonly onProblem?: (text: string) => void;
}

export interface RequestQueueCounters {
  /** Entries that Redis has confirmed, and the requests in them. */
  entries: number;
  requests: number;
  /** Requests that were handed over once more. */
  resent: number;
  /** Entries that Redis did not confirm. */
  failures: number;
}

/** Executions of a request that may begin; one that is lost after the last of them is answered with an error. */
const MAX_STARTED = 2;
/** Attempts that are lost before they begin are bounded too: something is wrong with whoever takes them. */
const MAX_ATTEMPTS = 100;

export class RedisRequestQueue implements RequestQueue {
  readonly counters: RequestQueueCounters = { entries: 0, requests: 0, resent: 0, failures: 0 };
  readonly #unanswered = new Map<number, Unanswered>();
  readonly #writers = new Map<number, PartitionWriter>();
  readonly #epochs = new Map<number, number>();
  readonly #stopWatching: readonly (() => void)[];
  #failing = false;
  #wasUp: boolean;

  constructor(private readonly options: RedisRequestQueueOptions) {
    this.#wasUp = options.redis.up;
    const { redis } = options;
    // Who takes the place of a node may not have heard of the last entries; nor may Redis, where it is another one or empty.
    this.#stopWatching = [redis.onChange((up) => up && this.#onRedisUp()), redis.onNodeLost(() => this.#resendAll())];
  }

  /** Requests that are not answered. */
  get unanswered(): number {
    return this.#unanswered.size;
  }

  /** Those of them that are not on their way to Redis. */
  get waiting(): number {
    let sum = 0;
    for (const writer of this.#writers.values()) sum += writer.waiting;
    return sum;
  }

  enqueue(envelope: Envelope): void {
    const { clock, inlineBytes, partitionOf } = this.options;
    const partition = partitionOf(envelope.model, envelope.version);
    const bytes = inputBytesOf(envelope);
    const request: Unanswered = {
      envelope,
      partition,
      heldBytes: bytes > inlineBytes ? bytes : undefined,
      sinceUs: clock.nowUs(),
      stage: 'waiting',
      handedOver: false,
      done: false,
      cancelWhenWritten: false,
      againWhenWritten: false,
      startedAttempts: 0,
    };
    this.#unanswered.set(envelope.ref.number, request);
    this.#writerOf(partition).add(request);
  }

  cancel(ref: RequestRef): void {
    const request = this.#end(ref.number);
    if (!request?.handedOver) return;
    // A cancellation must not overtake its request.
    if (request.stage === 'writing') request.cancelWhenWritten = true;
    else this.#tellCancelled(request);
  }

  forget(ref: RequestRef): void {
    this.#end(ref.number);
  }

  /** Somebody took a partition over: what it has to know of is sent again. An epoch that is not higher changes nothing. */
  onOwner(partition: number, epoch: Epoch): void {
    const known = this.#epochs.get(partition) ?? 0;
    if (epoch.number <= known) return;
    this.#epochs.set(partition, epoch.number);
    this.#resend(partition);
  }

  /** See {@link GatewayLinkListener.onLost}. Word of an attempt that has a successor changes nothing. */
  onLost(number: number, attempt: number, started: boolean, error: ServingError): void {
    const request = this.#unanswered.get(number);
    if (!request || attempt !== (request.envelope.attempt ?? 1)) return;
    if (started) request.startedAttempts++;
    if (request.startedAttempts >= MAX_STARTED || attempt >= MAX_ATTEMPTS) {
      this.#end(number);
      this.options.onFrame(number, { ok: false, final: true, error });
      return;
    }
    request.envelope = { ...request.envelope, attempt: attempt + 1 };
    this.#sendAgain(request);
  }

  /** Inputs of an unanswered request. */
  tensorsOf(number: number): readonly Tensor[] | undefined {
    return this.#unanswered.get(number)?.envelope.inputs;
  }

  /** Nothing more is written. The connection stays open: it is not this object's. */
  close(): void {
    for (const stop of this.#stopWatching) stop();
    for (const writer of this.#writers.values()) writer.close();
    this.#unanswered.clear();
  }

  #end(number: number): Unanswered | undefined {
    const request = this.#unanswered.get(number);
    if (!request) return undefined;
    this.#unanswered.delete(number);
    request.done = true;
    if (request.stage === 'waiting') this.#writerOf(request.partition).remove(request);
    return request;
  }

  #tellCancelled({ envelope, partition }: Unanswered): void {
    const { model, version, ref } = envelope;
    const { links, ownerOf } = this.options;
    const message = { kind: 'cancel', number: ref.number, model, version } as const;
    const owner = ownerOf(partition);
    if (owner !== undefined) return links.tell(owner, message);
    for (const scheduler of links.schedulers) links.tell(scheduler, message);
  }

  #writerOf(partition: number): PartitionWriter {
    let writer = this.#writers.get(partition);
    if (!writer) {
      const { clock, redis, keys } = this.options;
      writer = new PartitionWriter(keys.partition(partition).in, {
        clock,
        redis,
        onWritten: (requests) => this.#onWritten(requests),
        onFailed: (error, requests) => this.#onFailed(error, requests),
        onDoubt: () => this.#resend(partition),
      });
      this.#writers.set(partition, writer);
    }
    return writer;
  }

  #onWritten(requests: readonly Unanswered[]): void {
    this.counters.entries++;
    this.counters.requests += requests.length;
    this.#tellPending(requests);
    for (const request of requests) this.#confirm(request);
    if (!this.#failing) return;
    this.#failing = false;
    this.options.onProblem?.('requests are handed over through Redis again');
  }

  #onFailed(error: ServingError, requests: readonly Unanswered[]): void {
    this.counters.failures++;
    this.#tellPending(requests);
    if (this.#failing) return;
    this.#failing = true;
    this.options.onProblem?.(`requests cannot be handed over through Redis and wait: ${error.message}`);
  }

  #tellPending(requests: readonly Unanswered[]): void {
    for (const request of requests) if (request.cancelWhenWritten) this.#tellCancelled(request);
  }

  #confirm(request: Unanswered): void {
    if (!request.againWhenWritten) return;
    request.againWhenWritten = false;
    if (!request.done && request.stage === 'written') this.#sendAgain(request);
  }

  #onRedisUp(): void {
    for (const writer of this.#writers.values()) writer.onRedisUp();
    if (this.#wasUp) this.#resendAll();
    this.#wasUp = true;
  }

  #resendAll(): void {
    for (const partition of this.#writers.keys()) this.#resend(partition);
  }

  #resend(partition: number): void {
    for (const request of this.#unanswered.values()) {
      if (request.partition !== partition) continue;
      if (request.stage === 'written') this.#sendAgain(request);
      // Redis may have had it, and its reader or Redis itself may have lost it, before the confirmation was read here.
      else if (request.stage === 'writing') request.againWhenWritten = true;
    }
  }

  #sendAgain(request: Unanswered): void {
    if (request.stage === 'waiting') return;
    this.counters.resent++;
    const { model, version } = request.envelope;
    // Placement may have moved the version meanwhile.
    request.partition = this.options.partitionOf(model, version);
    this.#writerOf(request.partition).add(request);
  }
}
