/**
 * A gateway as a process of a cluster: joined with Redis for what it hands over, and by a link port with the schedulers and
 * workers that answer. Owns the order of things: files are read and ports opened before anybody is told where this gateway
 * is; at the end requests are finished before it leaves.
 */
import { systemClock } from '@paceline/clock';
import type { ClusterServeOptions } from '@paceline/config';
import { partitionOf } from '@paceline/core';
import { formatAddress, randomId } from '@paceline/link';
import {
  joinCluster,
  listenError,
  manifestVersion,
  openTracing,
  readLinkSecurity,
  type JoinedCluster,
  type MembershipBeat,
} from '@paceline/nest-kit';
import type { ReplyFrame } from '@paceline/protocol';
import { createGatewayLinks, RedisRequestQueue, type GatewayLinks } from '@paceline/streams';
import { StatisticsRegistry, type Log } from '@paceline/telemetry';
import type { Addresses } from '../start/front-doors.js';
import { createGateway, type Gateway } from '../start/gateway.js';
import { ClusterGateway } from './cluster-gateway.js';
import { clusterMetrics } from './cluster-metrics.js';
import { ClusterReadiness } from './cluster-readiness.js';

export interface GatewayProcess {
  /** Its incarnation, as in membership. */
  readonly id: string;
  /** Where clients reach it; a front door that is switched off is undefined. */
  readonly addresses: Addresses;
  /** Where schedulers and workers reach it. */
  readonly linkAddress: string;
  /** Whether it welcomes requests. */
  readonly ready: boolean;
  /** Requests that are accepted and not answered. */
  readonly unanswered: number;
  /**
   * Not ready from this moment: refuses new requests, finishes what was accepted, leaves the cluster, closes everything.
   * @returns the number of requests that were dropped because `limitMs` milliseconds were over
   */
  drain(limitMs: number): Promise<number>;
}

/** Listens and is announced when it resolves; models may still be missing. @throws StartError naming the setting at fault */
export async function startGateway(options: ClusterServeOptions, log: Log): Promise<GatewayProcess> {
  const { logger } = log;
  const security = readLinkSecurity(options.cluster);
  const id = randomId();
  const joined = await joinCluster(options.cluster, { self: { role: 'gateway', id }, clock: systemClock, logger });
  const closing: (() => unknown)[] = [() => joined.close()];
  try {
    return await open(options, log, { id, security, joined, closing });
  } catch (error) {
    for (const close of closing.reverse()) await close();
    throw error;
  }
}

interface Joined {
  readonly id: string;
  readonly security: ReturnType<typeof readLinkSecurity>;
  readonly joined: JoinedCluster;
  /** What must be closed where the start fails, in the order of opening. */
  readonly closing: (() => unknown)[];
}

async function open(options: ClusterServeOptions, log: Log, { id, security, joined, closing }: Joined): Promise<GatewayProcess> {
  const clock = systemClock;
  const { logger } = log;
  const { cluster: settings, repository } = options;
  const statistics = new StatisticsRegistry();
  const version = manifestVersion(new URL('../../package.json', import.meta.url));
  const tracing = await openTracing(options, { service: 'paceline-gateway', instance: id, version }, logger);
  closing.push(() => tracing?.close());
  const warn = (text: string): void => logger.warn(text);
  const cluster = new ClusterGateway({
    clock,
    logger,
    statistics,
    ownerLimitMs: options.limits.requestTimeoutMs,
    tell: (scheduler, message) => links.tell(scheduler, message),
    onSchedulerDown: () => readiness.onSchedulerDown(),
  });
  closing.push(() => cluster.close());
  const links: GatewayLinks = createGatewayLinks({ clock, id, ...security, onProblem: warn }, cluster);
  closing.push(() => links.close());
  // Those below are read by what is made before them.
  const later: { beat?: MembershipBeat; gateway?: Gateway } = {};
  const readiness = new ClusterReadiness({
    clock,
    redisFailingMs: () => later.beat?.failingMs ?? 0,
    links,
    members: () => (later.beat?.answered ? later.beat.members : undefined),
    modelsReady: () => (repository.strictReadiness ? cluster.catalog.allReady() : cluster.catalog.started),
  });
  const onFrame = (number: number, frame: ReplyFrame): void => later.gateway?.onFrame(number, frame);
  const { partitions, inlineBytes } = settings;
  const queue = new RedisRequestQueue({
    clock,
    redis: joined.redis,
    keys: joined.keys,
    inlineBytes,
    // A version that is gone from the routing had its request validated before.
    partitionOf: (model, version) => cluster.catalog.partitionOf(model, version) ?? partitionOf(model, version, partitions),
    ownerOf: (partition) => cluster.owners.of(partition),
    links,
    onFrame,
    onProblem: warn,
  });
  closing.push(() => queue.close());
  cluster.attach(queue, onFrame);
  const { host, port, advertiseHost } = settings.link;
  const bound = await links.listen(host, port).catch((error: unknown) => {
    throw listenError(error, 'schedulers and workers', host, port, '--link-port');
  });
  const served = await createGateway(options, log, {
    gateway: id,
    catalog: cluster.catalog,
    control: cluster.control,
    queue,
    statistics,
    shownStatistics: cluster.counters,
    loadOf: ({ name, version }) => cluster.loads.of(name, version),
    clock,
    tracing,
    version,
    families: clusterMetrics({ links, owners: cluster.owners, redis: joined.redis, queue }),
    isReady: () => readiness.ready,
    async close() {
      await later.beat?.stop();
      cluster.close();
      queue.close();
      await links.close();
      await joined.close();
      await tracing?.close();
    },
  });
  later.gateway = served;
  // From here on the gateway closes everything.
  closing.length = 0;
  const addresses = await served.listen();
  const linkAddress = formatAddress(advertiseHost, bound.port);
  // What it is told of others it needs for its readiness alone: they are the ones who dial.
  later.beat = await joined.announce(linkAddress, () => undefined);
  return {
    id,
    addresses,
    linkAddress,
    get ready() {
      return readiness.ready;
    },
    get unanswered() {
      return served.unanswered;
    },
    drain(limitMs) {
      void later.beat?.announce({ draining: true });
      return served.drain(limitMs);
    },
  };
}
