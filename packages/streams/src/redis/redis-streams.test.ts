// Gateways and a scheduler joined through a real Redis and real links keep the contract of the ports.
import { afterAll, beforeAll } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { until } from '@paceline/link/testing';
import type { GatewayMessage, ReplyFrame } from '@paceline/protocol';
import { connectRedis, RedisKeys, type RedisConnection } from '@paceline/redis';
import { startRedis, type RedisServer } from '@paceline/testkit';
import { createGatewayLinks } from '../link/gateway-links.js';
import { createSchedulerLinks } from '../link/scheduler-links.js';
import { describeStreams, SchedulerReports } from '../testing/index.js';
import { PartitionReader } from './partition-reader.js';
import { RedisRequestQueue } from './redis-request-queue.js';

const S = 'cccccccccccccccc';
const SECRET = Buffer.from('secret of the cluster');

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

async function connect(): Promise<RedisConnection> {
  const redis = connectRedis({ mode: 'standalone', urls: [server.url], name: 'test' });
  await redis.whenUp(5000);
  return redis;
}

describeStreams('Redis and links', async (intake, gateways) => {
  const redis = await connect();
  await redis.command('FLUSHALL');
  const keys = new RedisKeys('test');
  const partition = keys.partition(0);
  await redis.command('SET', partition.owner, S);
  let cancels = 0;
  const reports = new SchedulerReports();
  reports.onGatewayMessage = (gateway: string, message: GatewayMessage) => {
    cancels++;
    if (message.kind === 'cancel') intake.onCancel({ gateway, number: message.number }, message.model, message.version);
  };
  const scheduler = createSchedulerLinks({ clock: systemClock, id: S, secret: SECRET }, reports);
  const reader = new PartitionReader({ clock: systemClock, redis, keys: partition, owner: S, intake });
  reader.start({ cursor: '0-0' });
  let frames = 0;
  let sent = 0;
  let told = 0;
  const queues = new Map<string, RedisRequestQueue>();
  const closers: (() => Promise<void>)[] = [];
  const members = [];
  for (const [id, listener] of gateways) {
    const onFrame = (number: number, frame: ReplyFrame): void => {
      frames++;
      listener(number, frame);
    };
    const links = createGatewayLinks(
      { clock: systemClock, id, secret: SECRET },
      {
        onFrame,
        onLost: () => undefined,
        tensorsOf: () => undefined,
        onSchedulerUp: () => undefined,
        onSchedulerDown: () => undefined,
        onSchedulerMessage: () => undefined,
      },
    );
    const { port } = await links.listen('127.0.0.1', 0);
    members.push({ role: 'gateway', id, address: `127.0.0.1:${port}`, draining: false } as const);
    closers.push(() => links.close());
    const counted = {
      schedulers: links.schedulers,
      tell: (to: string, message: GatewayMessage) => {
        told++;
        links.tell(to, message);
      },
    };
    const options = { clock: systemClock, redis, keys, inlineBytes: 4096, partitionOf: () => 0, ownerOf: () => S, links: counted, onFrame };
    queues.set(id, new RedisRequestQueue(options));
  }
  scheduler.setMembers(members);
  await until('the scheduler is joined', () => scheduler.gateways.length === gateways.size);
  let enqueued = 0;
  for (const queue of queues.values()) {
    const { enqueue } = queue;
    queue.enqueue = (envelope) => {
      enqueued++;
      enqueue.call(queue, envelope);
    };
  }
  return {
    queues,
    replies: {
      send(ref, frame) {
        if (gateways.has(ref.gateway)) sent++;
        scheduler.send(ref, frame);
      },
    },
    async settle() {
      await until('requests have arrived', () => reader.counters.requests === enqueued);
      await until('replies have arrived', () => frames === sent);
      await until('cancellations have been told', () => cancels === told);
    },
    async close() {
      await reader.stop();
      for (const queue of queues.values()) queue.close();
      await scheduler.close();
      for (const close of closers) await close();
      redis.close();
    },
  };
});
