/**
 * The whole server in one process: gateway, scheduler and worker joined over the in-memory ports; only instance hosts
 * are processes of their own. Owns the order of things: listen before loading (a taken port must not cost a minute of
 * loading first), and at the end refuse, finish, then close.
 */
import { randomBytes } from 'node:crypto';
import { systemClock } from '@paceline/clock';
import type { ServeOptions } from '@paceline/config';
import { createGateway, type Addresses } from '@paceline/gateway';
import { LocalModelRepository } from '@paceline/model-repository';
import { manifestVersion, openTracing } from '@paceline/nest-kit';
import {
  LaneIntake,
  laneQueueTimeoutUs,
  Lanes,
  modelEventLog,
  ModelManager,
  RepositoryModelSource,
  sourceOptions,
  type StartReport,
} from '@paceline/scheduler';
import { InMemoryStreams } from '@paceline/streams';
import { StatisticsRegistry, type Log } from '@paceline/telemetry';
import { createLocalWorker, detectGpus, gpusFor } from '@paceline/worker';
import { EXAMPLE_REPOSITORY } from './example-repository.js';
import { collectAfterUnloads } from './memory.js';
import { restartCounter } from './observability.js';

export interface EmbeddedServer {
  /** Where it listens; a front door that is switched off is undefined. */
  readonly addresses: Addresses;
  readonly models: ModelManager;
  /** Loads the models of the start-up; see {@link ModelManager.start}. */
  loadModels(): Promise<StartReport>;
  /** Requests that are accepted and not answered. */
  readonly unanswered: number;
  /**
   * Not ready from this moment: refuses new requests, finishes what was accepted, then closes everything.
   * @returns the number of requests that were dropped because `limitMs` milliseconds were over
   */
  drain(limitMs: number): Promise<number>;
}

/** Listens and is live when it resolves; no model is loaded yet. @throws StartError when a port cannot be had. */
export async function startEmbeddedServer(options: ServeOptions, log: Log): Promise<EmbeddedServer> {
  const clock = systemClock;
  const id = randomBytes(8).toString('hex');
  const statistics = new StatisticsRegistry();
  const streams = new InMemoryStreams();

  const version = manifestVersion(new URL('../package.json', import.meta.url));
  const tracing = await openTracing(options, { service: 'paceline', instance: id, version }, log.logger);

  // Worker and scheduler.
  const gpus = await detectGpus({ simulated: options.simulatedGpus });
  const worker = createLocalWorker({
    gpus,
    replies: streams,
    logger: log.module('worker'),
    clock,
    observer: restartCounter(statistics),
    tracing,
  });
  statistics.instanceMemory = () => worker.instanceMemory();
  const lanes = new Lanes({ clock, link: worker, replies: streams, statistics, queueTimeoutUs: laneQueueTimeoutUs(options), tracing });
  const source = new RepositoryModelSource(repositoryOf(options), {
    ...sourceOptions(options),
    gpus: (backend) => gpusFor(gpus, backend),
  });
  const models = new ModelManager(
    { worker, lanes, clock, statistics, source },
    {
      controlMode: options.repository.controlMode,
      startupModels: options.repository.loadModels === 'all' ? ['*'] : options.repository.loadModels,
      loadThreadCount: options.repository.loadThreadCount,
      loadRetryCount: options.repository.loadRetryCount,
      pollIntervalMs: 1000 * options.repository.pollSecs,
      onPollFailure: (error) => log.module('models').error({ err: error }, 'model repository not polled; what is loaded stays'),
    },
  );
  worker.setListener({
    onInstance(event) {
      models.noteInstance(event);
      lanes.onInstance(event);
    },
    onCompletion: (completion) => lanes.onCompletion(completion),
  });
  streams.attachIntake(new LaneIntake(lanes, streams));
  models.subscribe(modelEventLog(log.module('models')));

  const gateway = await createGateway(options, log, {
    gateway: id,
    catalog: models,
    control: models,
    queue: streams,
    statistics,
    clock,
    tracing,
    version,
    isReady: () => (options.repository.strictReadiness ? models.allReady() : models.started),
    async close(graceMs) {
      await models.stop();
      await worker.close(graceMs);
      await tracing?.close();
    },
  });
  streams.attachGateway(id, (number, frame) => gateway.onFrame(number, frame));
  collectAfterUnloads(models, () => gateway.accepted, clock);
  const addresses = await gateway.listen();
  return {
    addresses,
    models,
    loadModels: () => models.start(),
    get unanswered() {
      return gateway.unanswered;
    },
    drain: (limitMs) => gateway.drain(limitMs),
  };
}

function repositoryOf({ repository }: ServeOptions): LocalModelRepository {
  const roots = repository.directories.length > 0 ? repository.directories : [EXAMPLE_REPOSITORY];
  return new LocalModelRepository({ roots, ...(repository.configName === undefined ? {} : { configName: repository.configName }) });
}
