/**
 * A worker as a process of its own. Owns the order of things: it can be reached before it is announced, and at the end it
 * says that it goes, finishes what it has, sees every reply arrive, and only then leaves.
 */
import { systemClock } from '@paceline/clock';
import type { ClusterServeOptions } from '@paceline/config';
import { formatAddress, randomId } from '@paceline/link';
import {
  createMetricsServer,
  joinCluster,
  listenForMetrics,
  manifestVersion,
  metricsOptions,
  openTracing,
  readLinkSecurity,
  type Health,
  type RunningProcess,
} from '@paceline/nest-kit';
import { createWorkerLinks } from '@paceline/streams';
import { createMetrics, StatisticsRegistry, type Log } from '@paceline/telemetry';
import { ClusterWorker } from '../cluster/cluster-worker.js';
import { createLocalWorker } from '../local-worker.js';
import type { WorkerObserver } from '../supervision/observer.js';
import { detectGpus } from '../gpu/detect-gpus.js';
import { devicesOf } from './devices.js';
import { openMicroservice } from './microservice.js';

export interface WorkerProcess extends RunningProcess {
  /** As in membership: 16 hex digits. */
  readonly id: string;
  /** Where schedulers reach it, `host:port`. */
  readonly address: string;
  /** Where /metrics, /live and /ready are, `host:port`; undefined = nowhere. */
  readonly metricsAddress: string | undefined;
}

/** How long replies may take to arrive once everything is finished, or given up. */
const CLOSE_MS = 5000;
/** How long the last completions take to reach schedulers at the most; one that does not would be run again elsewhere. */
const LAST_WORDS_US = 50_000;

/** Announced in the cluster when it resolves; it has no model until a scheduler loads one. @throws StartError */
export async function startWorker(options: ClusterServeOptions, log: Log): Promise<WorkerProcess> {
  const clock = systemClock;
  const { logger } = log;
  const { cluster } = options;
  const { link } = cluster;
  const id = randomId();
  const security = readLinkSecurity(cluster);
  const statistics = new StatisticsRegistry();
  const metrics = createMetrics({ statistics, ...metricsOptions(options.metrics) });
  const joined = await joinCluster(cluster, { self: { role: 'worker', id }, clock, logger });

  const version = manifestVersion(new URL('../../package.json', import.meta.url));
  const tracing = await openTracing(options, { service: 'paceline-worker', instance: id, version }, logger);
  const links = createWorkerLinks({ id, clock, ...security, onProblem: (text) => logger.warn(text) });
  const gpus = await detectGpus({ simulated: options.simulatedGpus });
  const local = createLocalWorker({
    gpus,
    replies: links,
    logger: log.module('worker'),
    clock,
    observer: restartCounter(statistics),
    tracing,
  });
  statistics.instanceMemory = () => local.instanceMemory();
  const worker = new ClusterWorker({ id, devices: devicesOf(gpus), worker: local, links, clock });

  let draining = false;
  let announced = false;
  const health = (): Health => {
    const waitsFor = [
      ...(draining ? ['the end: it is draining'] : []),
      ...(announced ? [] : ['its first heartbeat']),
      ...(joined.redis.up ? [] : ['redis']),
    ];
    return { ready: waitsFor.length === 0, waitsFor };
  };
  const metricsServer = createMetricsServer({ metrics, logger: log.module('metrics'), health });
  const closers: (() => Promise<void>)[] = [
    async () => tracing?.close(),
    () => joined.close(),
    () => links.close(),
    () => local.close(0),
    () => metricsServer.close(),
  ];
  const closeAll = async (): Promise<void> => {
    await Promise.allSettled(closers.toReversed().map((close) => close()));
  };

  try {
    const metricsPort = await listenForMetrics(metricsServer, options.metrics);
    const metricsAddress = metricsPort === undefined ? undefined : formatAddress(options.metrics.address, metricsPort);
    const microservice = await openMicroservice({
      ports: {
        served: worker,
        identity: { secret: security.secret, self: { role: 'worker', id, session: randomId() } },
        clock,
        onEnd(scheduler, reason) {
          if (scheduler === undefined) logger.warn({ reason }, 'a connection was refused');
          else logger.info({ scheduler, reason }, 'connection of a scheduler ended');
        },
      },
      host: link.host,
      port: link.port,
      tls: security.tls,
      logger: log.module('worker'),
    });
    closers.push(() => microservice.close());
    const address = formatAddress(link.advertiseHost, microservice.port);
    const beat = await joined.announce(address, (members) => links.setMembers(members));
    announced = true;
    return {
      id,
      address,
      metricsAddress,
      startedAs: { id, address, metrics: metricsAddress },
      get unfinished() {
        return worker.unfinished;
      },
      async drain(limitMs) {
        draining = true;
        // Redis may not answer: that is no reason to wait.
        void beat.announce({ draining: true });
        const dropped = await worker.drain(limitMs);
        await links.flush(CLOSE_MS);
        await new Promise<void>((resolve) => void clock.setTimer(LAST_WORDS_US, resolve));
        await closeAll();
        return dropped;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function restartCounter(statistics: StatisticsRegistry): WorkerObserver {
  return { onInstanceRestart: ({ model, version, reason }) => statistics.forVersion(model, version).recordRestart(reason) };
}
