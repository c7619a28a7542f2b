/**
 * A worker that runs nothing and a gateway that only writes, in one process: what a scheduler is measured with alone.
 * It keeps so many requests on their way: for each batch that comes it writes as many again, one packed entry a tick, and
 * ends the batch at once. Arguments: address of Redis, model, requests on their way.
 */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { systemClock } from '@paceline/clock';
import { RedisMembership } from '@paceline/cluster-state';
import { formatAddress, randomId } from '@paceline/link';
import type { Envelope, Member } from '@paceline/protocol';
import { WireWriter, writeEntryHead, writeEnvelope } from '@paceline/protocol/wire';
import { connectRedis, RedisKeys } from '@paceline/redis';
import { createGatewayLinks } from '@paceline/streams';
import { CONNECT_METHOD, channelOptions, serveScheduler, workerService } from '@paceline/worker-rpc';
import { benchModel } from '../models/catalog.js';
import { inputBatch, rawBytes } from '../requests/inputs.js';
import { ServedSink } from './served-sink.js';
import type { SinkMessage, SinkPlan } from './sink-worker.js';

const BEAT_MS = 500;
const MEMBER_TTL_MS = 5000;
const ENTRY_REQUESTS = 256;

const [redisUrl = '', modelName = '', inFlightText = ''] = process.argv.slice(2);
const model = benchModel(modelName);
const tell = (message: SinkMessage): void => void process.send?.(message);
const redis = connectRedis({ mode: 'standalone', urls: [redisUrl], name: 'bench-sink' });
const keys = new RedisKeys('paceline');
const id = randomId();
/** Schedulers own nothing before a gateway is there. Nothing that works as it should has anything to tell this one. */
const gateway = randomId();
const links = createGatewayLinks(
  { clock: systemClock, id: gateway, secret: undefined },
  {
    onFrame: (_number, frame) => frame.ok || fail(frame.error),
    onLost: (_number, _attempt, _started, error) => fail(error),
    tensorsOf: () => undefined,
    onSchedulerUp: () => undefined,
    onSchedulerDown: () => undefined,
    onSchedulerMessage(scheduler, message) {
      if (message.kind !== 'routing') return;
      const { epoch, generation } = message.routing;
      links.tell(scheduler, { kind: 'routed', epoch, generation });
    },
  },
);

const inputs = Array.from({ length: model.poolSize }, (_, i) => [
  { name: model.inputName, datatype: 'FP32' as const, shape: [1, ...model.inputShape], data: rawBytes(inputBatch(model, i, 1)) },
]);
const outputs = [model.outputName];
let partition = 0;
let number = 0;
let missing = 0;
let armed = false;
let completed = 0;

function envelope(): Envelope {
  const own = inputs[number % inputs.length] ?? [];
  const fixed = { version: '1', clientId: '', rows: 1, priority: 0, timeoutUs: 0, shapeKey: '', outputs };
  return { ...fixed, ref: { gateway, number: ++number }, model: model.name, inputs: own };
}

/** One entry, or more where there is more than fits. */
function produce(): void {
  armed = false;
  while (missing > 0) {
    const writer = new WireWriter();
    const count = writeEntryHead(writer);
    const requests = Math.min(missing, ENTRY_REQUESTS);
    for (let i = 0; i < requests; i++) writeEnvelope(writer, envelope(), undefined);
    writer.fillU32(count, requests);
    missing -= requests;
    redis.command('XADD', keys.partition(partition).in, '*', 'e', Buffer.concat(writer.finish())).catch(fail);
  }
}

function want(requests: number): void {
  missing += requests;
  if (!armed) setImmediate(produce);
  armed = true;
}

function fail(error: unknown): void {
  tell({ type: 'error', text: String(error) });
}

const worker = new ServedSink(id, (requests) => {
  completed += requests;
  want(requests);
});

function begin(): void {
  const found = worker.partitionOf(model.name);
  if (found === undefined) {
    setTimeout(begin, 50);
    return;
  }
  partition = found;
  tell({ type: 'ready' });
}

async function join(): Promise<void> {
  await redis.whenUp(10_000);
  const server = new Server(channelOptions);
  const identity = { secret: undefined, self: { role: 'worker', id, session: randomId() } } as const;
  const ports = { served: worker, identity, clock: systemClock };
  server.addService(workerService, { [CONNECT_METHOD]: (call: Parameters<typeof serveScheduler>[0]) => void serveScheduler(call, ports) });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  const link = await links.listen('127.0.0.1', 0);
  const members: readonly Member[] = [
    { role: 'worker', id, address: formatAddress('127.0.0.1', port), draining: false },
    { role: 'gateway', id: gateway, address: formatAddress(link.host, link.port), draining: false },
  ];
  const membership = new RedisMembership(redis, keys, systemClock);
  const beat = (): void => {
    for (const member of members) membership.beat(member, MEMBER_TTL_MS).catch(fail);
  };
  beat();
  setInterval(beat, BEAT_MS);
  begin();
}

process.on('message', ({ warmupMs, measureMs }: SinkPlan) => {
  want(Number(inFlightText));
  setTimeout(() => {
    tell({ type: 'window-open' });
    const before = completed;
    const startedAtMs = performance.now();
    const cpu = process.cpuUsage();
    setTimeout(() => {
      const elapsedMs = performance.now() - startedAtMs;
      const { user, system } = process.cpuUsage(cpu);
      tell({ type: 'result', requestsPerS: ((completed - before) * 1000) / elapsedMs, cpuShare: (user + system) / 1000 / elapsedMs });
    }, measureMs);
  }, warmupMs);
});
process.on('disconnect', () => process.exit(0));
join().catch(fail);
