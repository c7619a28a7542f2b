/**
 * One connection to Redis, the same for standalone, Sentinel and Cluster. It comes back by itself after a loss; while it
 * is down commands fail at once, so nothing piles up and nothing arrives late.
 */
import { systemClock } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';
import { Cluster, Redis } from 'ioredis';
import { redisError } from './errors.js';
import { planClient, type ClientPlan, type RedisOptions } from './options.js';
import type { RedisScript } from './script.js';

export type RedisArgument = string | number | Buffer;

export interface RedisConnection {
  /** False in a cluster: there the keys of one command must lie in one slot. */
  readonly spansSlots: boolean;
  readonly up: boolean;
  /**
   * Sends a command; replies are text, arrays of text, numbers or null.
   * @throws ServingError as {@link redisError} says, at once while there is no connection
   */
  command(name: string, ...args: RedisArgument[]): Promise<unknown>;
  /** The same with replies as Buffers in place of text. */
  commandBuffer(name: string, ...args: RedisArgument[]): Promise<unknown>;
  /** Runs a script; replies as {@link command}. The keys must lie in one slot. */
  run(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown>;
  /**
   * Another connection to the same Redis, of its own, for commands that block. One that answers nothing for 2 s longer than
   * `maxBlockMs` is cut, and its read fails. In a cluster take one for each key that is read.
   */
  blocking(name: string, maxBlockMs: number): RedisConnection;
  /** Calls back at each change of `up`; `error` is what was last heard of a connection that is down. @returns how to stop */
  onChange(listener: (up: boolean, error: Error | undefined) => void): () => void;
  /**
   * Calls back when the connection to one node of a cluster has ended while others stand: what replaces it may lack what
   * was written last. Never outside a cluster. @returns how to stop
   */
  onNodeLost(listener: () => void): () => void;
  /** @throws ServingError redis_unavailable where there is no connection within the limit; its cause says why */
  whenUp(limitMs: number): Promise<void>;
  /** Cuts it; what is under way fails. Idempotent. */
  close(): void;
}

/** Beyond the block time, for the way there and back and a Redis that is slow for a moment. */
const BLOCK_GRACE_MS = 2000;

/** Starts connecting and returns at once: see {@link RedisConnection.whenUp}. @throws ServingError for settings that cannot be */
export function connectRedis(options: RedisOptions): RedisConnection {
  return new Connection(planClient(options));
}

class Connection implements RedisConnection {
  readonly spansSlots: boolean;
  readonly #client: Redis | Cluster;
  readonly #listeners = new Set<(up: boolean, error: Error | undefined) => void>();
  readonly #nodeListeners = new Set<() => void>();
  #up = false;
  #lastError: Error | undefined;

  constructor(private readonly plan: ClientPlan) {
    this.spansSlots = plan.kind === 'single';
    const client = plan.kind === 'single' ? new Redis(plan.options) : new Cluster([...plan.nodes], plan.options);
    this.#client = client;
    // That no node of a cluster helped says less than why the last one did not.
    const noteError = (error: Error & { readonly lastNodeError?: Error }): void => void (this.#lastError = error.lastNodeError ?? error);
    client.on('error', noteError);
    client.on('node error', noteError);
    client.on('ready', () => this.#change(true));
    client.on('close', () => this.#change(false));
    client.on('end', () => this.#change(false));
    client.on('-node', () => {
      if (this.#up) for (const listener of [...this.#nodeListeners]) listener();
    });
  }

  get up(): boolean {
    return this.#up;
  }

  command(name: string, ...args: RedisArgument[]): Promise<unknown> {
    return this.#client.call(name, args).catch(this.#fail);
  }

  commandBuffer(name: string, ...args: RedisArgument[]): Promise<unknown> {
    return this.#client.callBuffer(name, args).catch(this.#fail);
  }

  run(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args];
    return this.#client
      .call('evalsha', [script.digest, ...rest])
      .catch((error: unknown) => {
        if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
        return this.#client.call('eval', [script.source, ...rest]);
      })
      .catch(this.#fail);
  }

  blocking(name: string, maxBlockMs: number): RedisConnection {
    const own = { connectionName: name, socketTimeout: maxBlockMs + BLOCK_GRACE_MS };
    const { plan } = this;
    if (plan.kind === 'single') return new Connection({ ...plan, options: { ...plan.options, ...own } });
    // A read that was cut is the reader's to repeat: it knows where it stopped.
    const options = { ...plan.options, retryDelayOnFailover: 0, redisOptions: { ...plan.options.redisOptions, ...own } };
    return new Connection({ ...plan, options });
  }

  onChange(listener: (up: boolean, error: Error | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  onNodeLost(listener: () => void): () => void {
    this.#nodeListeners.add(listener);
    return () => void this.#nodeListeners.delete(listener);
  }

  whenUp(limitMs: number): Promise<void> {
    if (this.#up) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = systemClock.setTimer(limitMs * 1000, () => {
        stop();
        const cause = this.#lastError ?? new Error('nothing was heard of it');
        const options = { reason: 'redis_unavailable', cause };
        reject(new ServingError('UNAVAILABLE', `Redis at ${this.plan.text} was not reached in ${limitMs} ms: ${cause.message}`, options));
      });
      const stop = this.onChange((up) => {
        if (!up) return;
        timer.cancel();
        stop();
        resolve();
      });
    });
  }

  close(): void {
    this.#client.disconnect();
  }

  #change(up: boolean): void {
    if (this.#up === up) return;
    this.#up = up;
    const error = up ? undefined : this.#lastError;
    if (up) this.#lastError = undefined;
    for (const listener of [...this.#listeners]) listener(up, error);
  }

  /** Why there is no connection is more than that there is none. */
  readonly #fail = (thrown: unknown): never => {
    throw redisError(this.#up || !this.#lastError || (thrown instanceof Error && thrown.name === 'ReplyError') ? thrown : this.#lastError);
  };
}
