/** For tests of schedulers over a real Redis and real connections: a gateway and a worker, played by the test. */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { systemClock } from '@paceline/clock';
import { parseClusterOptions, type ClusterServeOptions } from '@paceline/config';
import { randomId } from '@paceline/link';
import { joinCluster, type JoinedCluster } from '@paceline/nest-kit';
import { ServingError, type Epoch, type MemberRole, type ReplyFrame, type SchedulerMessage } from '@paceline/protocol';
import { createGatewayLinks, RedisRequestQueue, type GatewayLinks } from '@paceline/streams';
import { createLogger, SILENT } from '@paceline/telemetry';
import { channelOptions, CONNECT_METHOD, serveScheduler, workerService, type ServedWorker } from '@paceline/worker-rpc';

const SECRET = 'a secret of the cluster';
const HEARTBEAT_MS = 100;
export const PARTITIONS = 4;

export function clusterOptions(redisUrl: string, repository: string): ClusterServeOptions {
  const flags = [`--redis-url=${redisUrl}`, `--model-repository=${repository}`, `--partitions=${PARTITIONS}`, '--metrics-port=0'];
  const times = [`--heartbeat-ms=${HEARTBEAT_MS}`, '--lease-ttl-ms=600'];
  const parsed = parseClusterOptions('test', [...flags, ...times], { PACELINE_CLUSTER_SECRET: SECRET });
  if (parsed.kind !== 'options') throw new Error(JSON.stringify(parsed));
  return parsed.options;
}

/** @throws Error naming what it waited for, after 15 s */
export async function until(what: string, isTrue: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 15_000;
  while (!isTrue()) {
    if (performance.now() > deadlineMs) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function join(role: MemberRole, id: string, options: ClusterServeOptions): Promise<JoinedCluster> {
  return joinCluster(options.cluster, { self: { role, id }, clock: systemClock, logger: createLogger(SILENT) });
}

/** Hands requests over as a gateway does, and remembers what it is told. */
export class GatewayDouble {
  readonly id = randomId();
  /** By partition: who said last that it owns it. */
  readonly owners = new Map<number, { readonly scheduler: string; readonly epoch: Epoch }>();
  /** Models of the last routing. */
  routed: readonly string[] = [];
  readonly frames = new Map<number, ReplyFrame>();
  readonly told: SchedulerMessage['kind'][] = [];
  readonly links: GatewayLinks;
  queue!: RedisRequestQueue;
  #joined!: JoinedCluster;

  private constructor() {
    this.links = createGatewayLinks(
      { clock: systemClock, id: this.id, secret: new TextEncoder().encode(SECRET) },
      {
        onFrame: (number, frame) => this.#onFrame(number, frame),
        onLost: (number, attempt, started, error) => this.queue.onLost(number, attempt, started, error),
        tensorsOf: (number) => this.queue.tensorsOf(number),
        onSchedulerUp: () => undefined,
        onSchedulerDown: () => undefined,
        onSchedulerMessage: (scheduler, message) => this.#onMessage(scheduler, message),
      },
    );
  }

  static async start(options: ClusterServeOptions, partitionOf: (model: string) => number): Promise<GatewayDouble> {
    const self = new GatewayDouble();
    self.#joined = await join('gateway', self.id, options);
    self.queue = new RedisRequestQueue({
      clock: systemClock,
      redis: self.#joined.redis,
      keys: self.#joined.keys,
      inlineBytes: 4096,
      partitionOf,
      ownerOf: (partition) => self.owners.get(partition)?.scheduler,
      links: self.links,
      onFrame: (number, frame) => self.#onFrame(number, frame),
    });
    const { port } = await self.links.listen('127.0.0.1', 0);
    await self.#joined.announce(`127.0.0.1:${port}`, () => undefined);
    return self;
  }

  async stop(): Promise<void> {
    this.queue.close();
    await this.links.close();
    await this.#joined.close();
  }

  #onFrame(number: number, frame: ReplyFrame): void {
    this.frames.set(number, frame);
    this.queue.forget({ gateway: this.id, number });
  }

  #onMessage(scheduler: string, message: SchedulerMessage): void {
    this.told.push(message.kind);
    if (message.kind === 'owns') {
      this.owners.set(message.partition, { scheduler, epoch: message.epoch });
      this.queue.onOwner(message.partition, message.epoch);
    } else if (message.kind === 'routing') {
      const { epoch, generation, models } = message.routing;
      this.routed = models.map(({ model }) => model.name);
      this.links.tell(scheduler, { kind: 'routed', epoch, generation });
    } else if (message.kind === 'lost') {
      const error = new ServingError('UNAVAILABLE', 'the reply is lost');
      for (const { number, attempt } of message.requests) this.queue.onLost(number, attempt, true, error);
    }
  }
}

/** Puts a played worker behind a real gRPC port, and into the membership. */
export class WorkerDouble<Fake extends ServedWorker> {
  readonly #server = new Server(channelOptions);
  #joined!: JoinedCluster;

  private constructor(
    readonly id: string,
    readonly fake: Fake,
  ) {}

  /** @param make makes the worker of that id */
  static async start<Fake extends ServedWorker>(options: ClusterServeOptions, make: (id: string) => Fake): Promise<WorkerDouble<Fake>> {
    const id = randomId();
    const self = new WorkerDouble(id, make(id));
    const identity = { secret: new TextEncoder().encode(SECRET), self: { role: 'worker', id: self.id, session: randomId() } } as const;
    self.#server.addService(workerService, {
      [CONNECT_METHOD]: (call: Parameters<typeof serveScheduler>[0]) =>
        void serveScheduler(call, { served: self.fake, identity, clock: systemClock }),
    });
    const port = await new Promise<number>((resolve, reject) => {
      self.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    self.#joined = await join('worker', self.id, options);
    await self.#joined.announce(`127.0.0.1:${port}`, () => undefined);
    return self;
  }

  async stop(): Promise<void> {
    this.#server.forceShutdown();
    await this.#joined.close();
  }
}
