/**
 * The whole server in one process: gateway, scheduler and worker joined over the in-memory ports; only instance hosts
 * are processes of their own. Owns the order of things: listen before loading (a taken port must not cost a minute of
 * loading first), and at the end refuse, finish, then close.
 */
import { randomBytes } from 'node:crypto';
import { systemClock } from '@paceline/clock';
import type { ServeOptions } from '@paceline/config';
import {
  ByteBudget,
  createGatewayApp,
  createGrpcServer,
  createHttpDataPlane,
  createMetricsServer,
  InferService,
  PiscinaJsonOffload,
  registerInferRoutes,
  SERVED_EXTENSIONS,
  type GatewayOptions,
  type ServerInfo,
} from '@paceline/gateway';
import { LocalModelRepository } from '@paceline/model-repository';
import { LaneIntake, Lanes, ModelManager, RepositoryModelSource, type StartReport } from '@paceline/scheduler';
import { InMemoryStreams } from '@paceline/streams';
import { createMetrics, StatisticsRegistry, type Log } from '@paceline/telemetry';
import { createLocalWorker } from '@paceline/worker';
import { drain, type Draining } from './drain.js';
import { EXAMPLE_REPOSITORY } from './example-repository.js';
import { openFrontDoors, type Addresses, type FrontDoors } from './front-doors.js';
import { gatewayLimits, inferLimits, laneQueueTimeoutUs } from './limits.js';
import { collectAfterUnloads } from './memory.js';
import { logModelEvents } from './model-log.js';
import { metricsOptions, openAccessLog, restartCounter } from './observability.js';
import { openSecurity } from './security.js';
import { sourceOptions } from './source-options.js';
import { manifestVersion } from './version.js';

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
  const { logger } = log;
  const gateway = randomBytes(8).toString('hex');
  const security = openSecurity(options, logger, clock);
  const { access } = security;
  const accessLog = openAccessLog(options, clock, logger);
  const statistics = new StatisticsRegistry();
  const streams = new InMemoryStreams();

  // Worker and scheduler.
  const worker = createLocalWorker({ replies: streams, logger: log.module('worker'), clock, observer: restartCounter(statistics) });
  statistics.instanceMemory = () => worker.instanceMemory();
  const lanes = new Lanes({ clock, link: worker, replies: streams, statistics, queueTimeoutUs: laneQueueTimeoutUs(options) });
  const source = new RepositoryModelSource(repositoryOf(options), sourceOptions(options));
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
  logModelEvents(models, log.module('models'));

  // Gateway.
  const tagsOf = (model: string, version: string) => models.find(model, version)?.config.metricTags ?? {};
  const metrics = createMetrics({
    statistics,
    tagsOf,
    ...metricsOptions(options.metrics),
    server: {
      connections: () => ({ http: http.connectionCount, grpc: grpc.connectionCount }),
      bufferedBytes: () => http.bufferedBytes,
      ...(accessLog && { accessLog }),
    },
  });
  const inferHandler = new InferService({ gateway, catalog: models, queue: streams, statistics, clock, limits: inferLimits(options) });
  streams.attachGateway(gateway, (number, frame) => inferHandler.onFrame(number, frame));
  collectAfterUnloads(models, () => inferHandler.unanswered, clock);
  let ready = true;
  const info: ServerInfo = {
    name: options.id,
    version: manifestVersion(),
    extensions: SERVED_EXTENSIONS,
    isLive: () => true,
    isReady: () => ready && (options.repository.strictReadiness ? models.allReady() : models.started),
  };
  const limits = gatewayLimits(options);
  const budget = new ByteBudget(limits.maxBufferedBytes, clock);
  const noted = { statistics, ...(accessLog && { accessLog }) };
  const gatewayOptions: GatewayOptions = {
    catalog: models,
    control: models,
    ...noted,
    inferHandler,
    info,
    limits,
    logger: log.module('control'),
    logSettings: log.settings,
    access,
  };
  const offload = new PiscinaJsonOffload();
  const inferRoute = {
    ...noted,
    inferHandler,
    catalog: models,
    logger: log.module('http'),
    budget,
    maxInputBytes: limits.maxRequestBytes,
    maxDecompressionRatio: options.http.maxDecompressionRatio,
    offload,
  };
  const app = await createGatewayApp({
    ...gatewayOptions,
    registerInferRoutes: (fastify) => registerInferRoutes(fastify, { ...inferRoute, stallTimeoutS: limits.stallTimeoutS }),
  });
  const http = createHttpDataPlane({
    ...inferRoute,
    fallbackServer: app.getHttpServer(),
    limits: { ...limits, maxInputBytes: limits.maxRequestBytes },
    clock,
    access,
    ...(security.httpTls && { tls: security.httpTls }),
  });
  const grpc = createGrpcServer({
    ...gatewayOptions,
    logger: log.module('grpc'),
    budget,
    clock,
    ...(security.grpcTls && { tls: security.grpcTls }),
  });
  const doors: FrontDoors = { http, grpc, metrics: createMetricsServer(metrics, log.module('metrics'), access) };

  const closeAll = async (graceMs: number): Promise<number> => {
    const [cut] = await Promise.all([http.close(graceMs), grpc.close(graceMs)]);
    await app.close();
    await offload.close();
    await models.stop();
    await worker.close(graceMs);
    await doors.metrics.close();
    security.close();
    await accessLog?.close();
    return cut;
  };

  const draining: Draining = {
    announce: () => {
      ready = false;
    },
    refuse() {
      const answered = inferHandler.drain();
      http.beginDrain();
      grpc.beginDrain();
      return answered;
    },
    get unanswered() {
      return inferHandler.unanswered;
    },
    get connectionCount() {
      return http.connectionCount + grpc.connectionCount;
    },
    close: closeAll,
  };
  const addresses = await openFrontDoors(doors, options).catch(async (error: unknown) => {
    await closeAll(0);
    throw error;
  });
  return {
    addresses,
    models,
    loadModels: () => models.start(),
    get unanswered() {
      return inferHandler.unanswered;
    },
    drain: (limitMs) => drain(draining, { limitMs, delayMs: options.drainDelayMs, lameDuckMs: options.lameDuckMs }, clock),
  };
}

function repositoryOf({ repository }: ServeOptions): LocalModelRepository {
  const roots = repository.directories.length > 0 ? repository.directories : [EXAMPLE_REPOSITORY];
  return new LocalModelRepository({ roots, ...(repository.configName === undefined ? {} : { configName: repository.configName }) });
}
