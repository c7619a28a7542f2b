/** For tests: a scheduler and a worker of a cluster, as a gateway meets them: over Redis and real links. */
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '@paceline/clock';
import { parseClusterOptions, type ClusterServeOptions } from '@paceline/config';
import { randomId } from '@paceline/link';
import { joinCluster, type JoinedCluster, type MembershipBeat } from '@paceline/nest-kit';
import type { Envelope, GatewayMessage, MemberRole, SchedulerMessage } from '@paceline/protocol';
import { readEntry } from '@paceline/protocol/wire';
import { createSchedulerLinks, createWorkerLinks, type SchedulerLinks, type WorkerLinks } from '@paceline/streams';
import { createLogger, SILENT } from '@paceline/telemetry';

const SECRET = 'a secret of the cluster';

/** Options of a process beside that Redis, with every port chosen by the system. */
export function clusterOptions(redisUrl: string, ...more: string[]): ClusterServeOptions {
  const ports = ['--http-port=0', '--grpc-port=0', '--metrics-port=0', '--heartbeat-ms=100', '--log-info=false', '--log-warning=false'];
  const parsed = parseClusterOptions('test', [`--redis-url=${redisUrl}`, ...ports, ...more], { PACELINE_CLUSTER_SECRET: SECRET });
  if (parsed.kind !== 'options') throw new Error(JSON.stringify(parsed));
  return parsed.options;
}

async function join(role: MemberRole, id: string, options: ClusterServeOptions): Promise<JoinedCluster> {
  return joinCluster(options.cluster, { self: { role, id }, clock: systemClock, logger: createLogger(SILENT) });
}

const setup = (id: string) => ({ clock: systemClock, id, secret: new TextEncoder().encode(SECRET) });

export class SchedulerDouble {
  readonly id = randomId();
  readonly heard: GatewayMessage[] = [];
  /** Told to each gateway that connects. */
  greeting: readonly SchedulerMessage[] = [];
  #cursor = '-';
  links: SchedulerLinks;
  joined: JoinedCluster;

  static async start(
    options: ClusterServeOptions,
    greetingOf: (self: SchedulerDouble) => readonly SchedulerMessage[],
  ): Promise<SchedulerDouble> {
    const self = new SchedulerDouble();
    self.greeting = greetingOf(self);
    self.links = createSchedulerLinks(setup(self.id), {
      onGatewayUp: (gateway) => {
        for (const message of self.greeting) self.links.tell(gateway, message);
      },
      onGatewayDown: () => undefined,
      onGatewayMessage: (_gateway, message) => void self.heard.push(message),
    });
    self.joined = await join('scheduler', self.id, options);
    await self.joined.announce('', (members) => self.links.setMembers(members));
    return self;
  }

  /**
   * Reads a partition's stream from where the last call stopped.
   * @returns the next `count` requests, or more. @throws Error when they do not come within 10 s
   */
  async handedOver(partition: number, count: number): Promise<Envelope[]> {
    const key = this.joined.keys.partition(partition).in;
    const envelopes: Envelope[] = [];
    const deadlineMs = performance.now() + 10_000;
    while (envelopes.length < count) {
      if (performance.now() > deadlineMs) throw new Error(`expected ${count} requests in ${key}, found ${envelopes.length}`);
      await delay(5);
      const entries = await this.joined.redis.commandBuffer('XRANGE', key, this.#cursor, '+').catch(() => []);
      for (const [id, [, bytes]] of entries as [Buffer, [Buffer, Buffer]][]) {
        this.#cursor = `(${id.toString()}`;
        envelopes.push(...readEntry(bytes));
      }
    }
    return envelopes;
  }

  async stop(): Promise<void> {
    await this.joined.close();
    await this.links.close();
  }
}

export class WorkerDouble {
  readonly id = randomId();
  readonly links: WorkerLinks = createWorkerLinks(setup(this.id));
  joined: JoinedCluster;
  beat: MembershipBeat;

  static async start(options: ClusterServeOptions): Promise<WorkerDouble> {
    const self = new WorkerDouble();
    self.joined = await join('worker', self.id, options);
    self.beat = await self.joined.announce('127.0.0.1:1', (members) => self.links.setMembers(members));
    return self;
  }

  async stop(): Promise<void> {
    await this.joined.close();
    await this.links.close();
  }
}
