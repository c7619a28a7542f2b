/**
 * Joins what makes a gateway: HTTP, gRPC and metrics, access, access log, and the service that holds each request until it
 * is answered. What lies behind - in the same process or in others - comes as ports. Owns the order at the end: refuse,
 * finish, close the doors, then what is behind them.
 */
import type { Clock } from '@paceline/clock';
import type { ServeOptions } from '@paceline/config';
import { metricsOptions } from '@paceline/nest-kit';
import type { ModelCatalog, ModelControl, ReplyFrame } from '@paceline/protocol';
import type { RequestQueue } from '@paceline/streams';
import {
  createMetrics,
  type Log,
  type MetricFamily,
  type StatisticsReader,
  type StatisticsRegistry,
  type Tracing,
} from '@paceline/telemetry';
import { createGatewayApp } from '../control/gateway.app.js';
import { SERVED_EXTENSIONS, type GatewayOptions, type ServerInfo } from '../control/gateway.options.js';
import { createGrpcServer } from '../grpc/grpc.server.js';
import { createHttpDataPlane, PiscinaJsonOffload, registerInferRoutes } from '../http/index.js';
import { ByteBudget } from '../infer/byte-budget.js';
import { InferService, type InferServiceOptions } from '../infer/infer-service.js';
import { createMetricsServer } from '../metrics/metrics.server.js';
import { openAccessLog } from './access-log.js';
import { drain, type Draining } from './drain.js';
import { openFrontDoors, type Addresses, type FrontDoors } from './front-doors.js';
import { gatewayLimits, inferLimits } from './limits.js';
import { openSecurity } from './security.js';

/** What a gateway stands on. */
export interface GatewayPorts {
  /** Identity of this gateway process: 16 random hex digits, fresh at every start. */
  readonly gateway: string;
  readonly catalog: ModelCatalog & {
    /** For the labels of metrics. */
    find?(model: string, version: string): { readonly config: { readonly metricTags: Readonly<Record<string, string>> } } | undefined;
  };
  readonly control: ModelControl;
  readonly queue: RequestQueue;
  /** Nothing may be recorded in it yet. */
  readonly statistics: StatisticsRegistry;
  /** See {@link GatewayOptions.shownStatistics}. */
  readonly shownStatistics?: StatisticsReader;
  /** See {@link InferServiceOptions.loadOf}. */
  readonly loadOf?: InferServiceOptions['loadOf'];
  readonly clock: Clock;
  /** Where spans go; without it there are none. Whoever opened it closes it. */
  readonly tracing?: Tracing | undefined;
  /** Of the program, as its metadata says. */
  readonly version: string;
  /** What it shows to a scrape beside what every gateway shows. */
  readonly families?: readonly MetricFamily[];
  /** Whether what is behind can take requests. */
  isReady(): boolean;
  /** Ends what is behind, once the doors are closed. */
  close(graceMs: number): Promise<void>;
}

export interface Gateway {
  /** Opens the doors, one after the other. @throws StartError when a port cannot be had; everything is closed then */
  listen(): Promise<Addresses>;
  /** Where replies arrive. */
  onFrame(number: number, frame: ReplyFrame): void;
  /** Requests that are accepted and not answered. */
  readonly unanswered: number;
  /** Requests accepted so far. */
  readonly accepted: number;
  /**
   * Not ready from this moment: refuses new requests, finishes what was accepted, then closes everything.
   * @returns the number of requests that were dropped because `limitMs` milliseconds were over
   */
  drain(limitMs: number): Promise<number>;
}

/** @throws StartError for a file of keys, certificates or the access log that cannot be used */
export async function createGateway(options: ServeOptions, log: Log, ports: GatewayPorts): Promise<Gateway> {
  const { catalog, control, queue, statistics, clock } = ports;
  const { logger } = log;
  const security = openSecurity(options, logger, clock);
  const { access } = security;
  const accessLog = openAccessLog(options, clock, logger);
  const metrics = createMetrics({
    statistics,
    tagsOf: (model, version) => catalog.find?.(model, version)?.config.metricTags ?? {},
    ...metricsOptions(options.metrics),
    ...(ports.families && { families: ports.families }),
    server: {
      connections: () => ({ http: http.connectionCount, grpc: grpc.connectionCount }),
      bufferedBytes: () => http.bufferedBytes,
      ...(accessLog && { accessLog }),
    },
  });
  const inferHandler = new InferService({
    gateway: ports.gateway,
    catalog,
    queue,
    statistics,
    clock,
    limits: inferLimits(options),
    tracing: ports.tracing,
    ...(ports.loadOf && { loadOf: ports.loadOf }),
  });
  let ready = true;
  const info: ServerInfo = {
    name: options.id,
    version: ports.version,
    extensions: SERVED_EXTENSIONS,
    isLive: () => true,
    isReady: () => ready && ports.isReady(),
  };
  const limits = gatewayLimits(options);
  const budget = new ByteBudget(limits.maxBufferedBytes, clock);
  const noted = { statistics, traced: ports.tracing !== undefined, ...(accessLog && { accessLog }) };
  const gatewayOptions: GatewayOptions = {
    catalog,
    control,
    ...noted,
    ...(ports.shownStatistics && { shownStatistics: ports.shownStatistics }),
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
    catalog,
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
    await ports.close(graceMs);
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
  return {
    listen: () =>
      openFrontDoors(doors, options).catch(async (error: unknown) => {
        await closeAll(0);
        throw error;
      }),
    onFrame: (number, frame) => inferHandler.onFrame(number, frame),
    get accepted() {
      return inferHandler.accepted;
    },
    get unanswered() {
      return inferHandler.unanswered;
    },
    drain: (limitMs) => drain(draining, { limitMs, delayMs: options.drainDelayMs, lameDuckMs: options.lameDuckMs }, clock),
  };
}
