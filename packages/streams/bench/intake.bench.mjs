/**
 * What the streams cost a request, without links and lanes: packing and unpacking alone, and the whole way from a gateway's
 * queue through a real Redis to an intake, both ends in this one process. Run after a build:
 *   node packages/streams/bench/intake.bench.mjs [--bytes 600] [--in-flight 64] [--seconds 3]
 */
import { parseArgs } from 'node:util';
import { systemClock } from '@paceline/clock';
import { readEntry, WireWriter, writeEntryHead, writeEnvelope } from '@paceline/protocol/wire';
import { connectRedis, RedisKeys } from '@paceline/redis';
import { startRedis } from '@paceline/testkit';
import { PartitionReader, RedisRequestQueue } from '../dist/index.js';

const { values } = parseArgs({
  options: {
    bytes: { type: 'string', default: '600' },
    'in-flight': { type: 'string', default: '64' },
    seconds: { type: 'string', default: '3' },
  },
});
const bytes = Number(values.bytes);
const inFlight = Number(values['in-flight']);
const seconds = Number(values.seconds);
const GATEWAY = '0123456789abcdef';
const data = new Uint8Array(bytes);

function requestOf(number) {
  return {
    ref: { gateway: GATEWAY, number },
    model: 'densenet_onnx',
    version: '1',
    clientId: '',
    rows: 1,
    priority: 0,
    timeoutUs: 0,
    shapeKey: '',
    inputs: [{ name: 'INPUT0', datatype: 'UINT8', shape: [1, bytes], data }],
    outputs: ['OUTPUT0'],
  };
}

/** Nanoseconds of CPU for each of `count` envelopes in entries of `inFlight`. */
function timed(count, turn) {
  turn();
  const start = process.cpuUsage();
  for (let done = 0; done < count; done += inFlight) turn();
  const { user, system } = process.cpuUsage(start);
  return Math.round(((user + system) * 1000) / count);
}

const requests = Array.from({ length: inFlight }, (_, number) => requestOf(number + 1));
function pack() {
  const writer = new WireWriter();
  writer.fillU32(writeEntryHead(writer), inFlight);
  for (const request of requests) writeEnvelope(writer, request);
  return writer.finish();
}
const entry = Buffer.concat(pack());
for (let warm = 0; warm < 2; warm++) timed(200_000, pack);
console.log(`packing    ${timed(500_000, pack)} ns a request of ${bytes} bytes, ${inFlight} an entry`);
for (let warm = 0; warm < 2; warm++) timed(200_000, () => readEntry(entry));
console.log(`unpacking  ${timed(500_000, () => readEntry(entry))} ns`);

const server = await startRedis();
const redis = connectRedis({ mode: 'standalone', urls: [server.url], name: 'bench' });
await redis.whenUp(5000);
const keys = new RedisKeys('bench');
const partition = keys.partition(0);
await redis.command('SET', partition.owner, 'bench');
const queue = new RedisRequestQueue({
  clock: systemClock,
  redis,
  keys,
  inlineBytes: Math.max(4096, bytes),
  partitionOf: () => 0,
  ownerOf: () => undefined,
  links: { schedulers: [], tell: () => undefined },
  onFrame: () => undefined,
});
let next = 1;
let answered = 0;
const intake = {
  onEnvelope({ ref }) {
    answered++;
    queue.forget(ref);
    queue.enqueue(requestOf(next++));
  },
  onCancel: () => undefined,
};
const reader = new PartitionReader({ clock: systemClock, redis, keys: partition, owner: 'bench', intake });
reader.start({ cursor: '0-0' });
for (let i = 0; i < inFlight; i++) queue.enqueue(requestOf(next++));
await new Promise((resolve) => setTimeout(resolve, 1000));
const before = { answered, entries: queue.counters.entries, us: performance.now() * 1000, cpu: process.cpuUsage() };
const redisBefore = await redisCpuUs();
await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const count = answered - before.answered;
const perSecond = Math.round((count / (performance.now() * 1000 - before.us)) * 1e6);
const { user, system } = process.cpuUsage(before.cpu);
const redisUs = (await redisCpuUs()) - redisBefore;
const each = (us) => (us / count).toFixed(2);
console.log(
  `through Redis  ${perSecond} requests/s at ${inFlight} in flight, ${(count / (queue.counters.entries - before.entries)).toFixed(1)} an entry;` +
    ` CPU ${each(user + system)} us (both ends), ${each(redisUs)} us (Redis)`,
);
await reader.stop();
queue.close();
redis.close();
await server.stop();

async function redisCpuUs() {
  const info = await redis.command('INFO', 'cpu');
  const of = (name) => Number(new RegExp(`${name}:([0-9.]+)`).exec(info)[1]);
  return (of('used_cpu_sys') + of('used_cpu_user')) * 1e6;
}
