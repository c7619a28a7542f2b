/** A gateway's queue and readers of one partition over a real Redis, and all that they have been told. */
import { systemClock } from '@paceline/clock';
import type { Envelope, GatewayMessage, ReplyFrame } from '@paceline/protocol';
import { connectRedis, RedisKeys, type RedisConnection } from '@paceline/redis';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { PartitionReader } from '../partition-reader.js';
import { RedisRequestQueue, type RedisRequestQueueOptions } from '../redis-request-queue.js';

/** Of the gateway whose requests these are. */
export const GATEWAY = 'aaaaaaaaaaaaaaaa';
/** Of the scheduler that owns the partition. */
export const OWNER = 'cccccccccccccccc';

export function requestOf(number: number, more: Partial<Envelope> = {}): Envelope {
  return {
    ref: { gateway: GATEWAY, number },
    model: 'm',
    version: '1',
    clientId: '',
    rows: 1,
    priority: 0,
    timeoutUs: 0,
    shapeKey: '',
    inputs: [{ name: 'IN', datatype: 'UINT8', shape: [1, 3], data: Uint8Array.of(number, 0, 255) }],
    outputs: ['OUT'],
    ...more,
  };
}

export class RedisRig {
  readonly keys = new RedisKeys('test');
  readonly partition = this.keys.partition(0);
  readonly seen: Envelope[] = [];
  readonly cancelled: GatewayMessage[] = [];
  readonly frames: [number, ReplyFrame][] = [];
  readonly problems: string[] = [];
  readonly queue: RedisRequestQueue;
  readonly #readers: PartitionReader[] = [];

  private constructor(
    readonly server: RedisServer,
    readonly redis: RedisConnection,
  ) {
    this.queue = this.queueOf({});
  }

  /** Redis is empty, but for the lease of {@link OWNER}. */
  static async open(): Promise<RedisRig> {
    const server = await startRedis();
    const redis = connectRedis({ mode: 'standalone', urls: [server.url], name: 'test' });
    await redis.whenUp(5000);
    const rig = new RedisRig(server, redis);
    await rig.own(OWNER);
    return rig;
  }

  async close(): Promise<void> {
    this.server.resume();
    this.queue.close();
    for (const reader of this.#readers) await reader.stop();
    this.redis.close();
    await this.server.stop();
  }

  async own(owner: string): Promise<void> {
    await this.redis.command('SET', this.partition.owner, owner);
  }

  queueOf(options: Partial<RedisRequestQueueOptions>): RedisRequestQueue {
    return new RedisRequestQueue({
      clock: systemClock,
      redis: this.redis,
      keys: this.keys,
      inlineBytes: 4096,
      partitionOf: () => 0,
      ownerOf: () => OWNER,
      links: { schedulers: [OWNER], tell: (_, message) => void this.cancelled.push(message) },
      onFrame: (number, frame) => void this.frames.push([number, frame]),
      onProblem: (problem) => void this.problems.push(problem),
      ...options,
    });
  }

  /** Reads into {@link seen}, as {@link OWNER}. */
  read(cursor = '0-0', blockMs = 100): PartitionReader {
    const intake = { onEnvelope: (envelope: Envelope) => void this.seen.push(envelope), onCancel: () => undefined };
    const { redis, partition: keys } = this;
    const onProblem = (problem: string): void => void this.problems.push(problem);
    const reader = new PartitionReader({ clock: systemClock, redis, keys, owner: OWNER, intake, blockMs, onProblem });
    this.#readers.push(reader);
    reader.start({ cursor });
    return reader;
  }

  numbers(): number[] {
    return this.seen.map(({ ref }) => ref.number);
  }

  /** Entries in the stream. */
  async length(): Promise<number> {
    return Number(await this.redis.command('XLEN', this.partition.in));
  }
}

/** Asks Redis until it answers as it should. @throws Error naming `what` after 5 s */
export async function untilAsync(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 5000;
  while (!(await holds())) if (performance.now() > endMs) throw new Error(`not within 5 s: ${what}`);
}
