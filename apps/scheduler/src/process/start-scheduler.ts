/**
 * A scheduler as a process: joined with Redis for leases and what gateways hand over, with gateways and workers by
 * connections that it dials; nobody dials it. Owns the order of things: it says that it is there before it tries for
 * leases, and at the end gives them up before it waits for anything.
 */
import { systemClock } from '@paceline/clock';
import { RedisDesiredState, RedisLeases } from '@paceline/cluster-state';
import type { ClusterServeOptions, ServeOptions } from '@paceline/config';
import { formatAddress, randomId } from '@paceline/link';
import { LocalModelRepository } from '@paceline/model-repository';
import {
  createMetricsServer,
  joinCluster,
  listenForMetrics,
  manifestVersion,
  metricsOptions,
  openTracing,
  readLinkSecurity,
  StartError,
  type Health,
  type MembershipBeat,
  type RunningProcess,
} from '@paceline/nest-kit';
import { createSchedulerLinks } from '@paceline/streams';
import { createMetrics, StatisticsRegistry, type Log } from '@paceline/telemetry';
import { channelCredentialsOf, connectGrpcWorker } from '@paceline/worker-rpc';
import type { PlacementOptions } from '../placement/cluster/placement-ports.js';
import { RepositoryModelSource } from '../placement/repository-source.js';
import { openContext } from './context.js';
import { ClusterScheduler } from './cluster-scheduler.js';
import { laneQueueTimeoutUs } from './limits.js';
import { modelEventLog } from './model-log.js';
import { schedulerFamilies } from './scheduler-metrics.js';
import { sourceOptions } from './source-options.js';
import { StreamReaders } from './stream-readers.js';

export interface SchedulerProcess extends RunningProcess {
  /** As in membership: 16 hex digits. */
  readonly id: string;
  /** Where /metrics, /live and /ready are, `host:port`; undefined = nowhere. */
  readonly metricsAddress: string | undefined;
}

/** Announced in the cluster when it resolves; partitions and models follow. @throws StartError */
export async function startScheduler(options: ClusterServeOptions, log: Log): Promise<SchedulerProcess> {
  const clock = systemClock;
  const { logger } = log;
  const { cluster } = options;
  const repository = openRepository(options);
  const id = randomId();
  const security = readLinkSecurity(cluster);
  const statistics = new StatisticsRegistry();
  // Whoever dies is missed no later than its leases are free.
  const joining = {
    self: { role: 'scheduler', id },
    clock,
    logger,
    lifetimeMs: Math.max(cluster.leaseTtlMs, 2 * cluster.heartbeatMs),
  } as const;
  const joined = await joinCluster(cluster, joining);
  const closers: (() => Promise<void>)[] = [() => joined.close()];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.toReversed()) await close().catch((error: unknown) => logger.warn({ err: error }, 'not closed in order'));
  };

  const version = manifestVersion(new URL('../../package.json', import.meta.url));
  const tracing = await openTracing(options, { service: 'paceline-scheduler', instance: id, version }, logger);
  closers.push(async () => tracing?.close());
  let draining = false;
  const later: { beat?: MembershipBeat } = {};
  const readers = new StreamReaders({ joined, clock, owner: id, onProblem: (text) => logger.warn(text) });
  const scheduler = new ClusterScheduler(
    {
      clock,
      statistics,
      tracing,
      leases: new RedisLeases(joined.redis, joined.keys),
      desired: new RedisDesiredState(joined.redis, joined.keys),
      source: new RepositoryModelSource(repository, { ...sourceOptions(options), gpus: 'by-worker' }),
      connectWorker: connectGrpcWorker({
        identity: { secret: security.secret, self: { role: 'scheduler', id, session: randomId() } },
        clock,
        credentials: channelCredentialsOf(security.tls),
        onFailure: (worker, address, reason) => logger.debug({ worker, address, reason }, 'worker not reached'),
      }),
      read: (lease, intake) => readers.read(lease, intake),
      logger: log.module('models'),
      onModelEvent: modelEventLog(log.module('models')),
      // Whoever holds nothing must not be counted among those who share.
      onStanding: (takesPart) => void (draining || later.beat?.announce({ draining: !takesPart })),
    },
    {
      placement: placementOptions(id, options),
      queueTimeoutUs: laneQueueTimeoutUs(options),
      // A gateway that died is out of the membership before.
      outOfReachMs: 2 * cluster.leaseTtlMs + 4 * cluster.heartbeatMs,
    },
  );
  const families = schedulerFamilies(
    () => scheduler,
    () => readers.counters,
    cluster.partitions,
  );
  const metrics = createMetrics({ statistics, ...metricsOptions(options.metrics), families });
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
  closers.push(() => metricsServer.close());

  try {
    const metricsPort = await listenForMetrics(metricsServer, options.metrics);
    const metricsAddress = metricsPort === undefined ? undefined : formatAddress(options.metrics.address, metricsPort);
    const context = await openContext(scheduler, logger);
    closers.push(() => context.close());
    const links = createSchedulerLinks({ clock, id, ...security, onProblem: (text) => logger.warn(text) }, scheduler);
    closers.push(() => links.close());
    scheduler.start(links);
    closers.push(async () => void (await scheduler.stop(0)));
    const beat = await joined.announce('', (members) => scheduler.onMembers(members), { draining: true });
    later.beat = beat;
    if (scheduler.standing.takesPart) void beat.announce({ draining: false });
    announced = true;
    return {
      id,
      metricsAddress,
      startedAs: { id, metrics: metricsAddress },
      get unfinished() {
        return scheduler.unfinished;
      },
      async drain(limitMs) {
        draining = true;
        // Redis may not answer: that is no reason to wait.
        void beat.announce({ draining: true });
        const dropped = await scheduler.stop(limitMs);
        closers.pop();
        await closeAll();
        return dropped;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function openRepository({ repository }: ServeOptions): LocalModelRepository {
  const { directories, configName } = repository;
  if (directories.length === 0) {
    throw new StartError('--model-repository is missing: a cluster serves models from a directory that schedulers and workers share');
  }
  return new LocalModelRepository({ roots: directories, ...(configName === undefined ? {} : { configName }) });
}

function placementOptions(scheduler: string, { repository, cluster }: ClusterServeOptions): PlacementOptions {
  return {
    scheduler,
    partitions: cluster.partitions,
    leaseTtlMs: cluster.leaseTtlMs,
    heartbeatMs: cluster.heartbeatMs,
    ...(cluster.modelUploadDirectory !== undefined && { uploadDirectory: cluster.modelUploadDirectory }),
    controlMode: repository.controlMode,
    startupModels: repository.loadModels === 'all' ? ['*'] : repository.loadModels,
    loadThreadCount: repository.loadThreadCount,
    loadRetryCount: repository.loadRetryCount,
    pollIntervalMs: 1000 * repository.pollSecs,
  };
}
