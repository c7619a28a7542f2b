/**
 * For tests: every door of a gateway as it is put together for real (bare sockets before Fastify, gRPC, metrics), behind one
 * access policy, over models that answer at once. What is logged can be read.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials, Metadata, type ChannelCredentials, type ServiceError } from '@grpc/grpc-js';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { systemClock, type Clock } from '@paceline/clock';
import { FakeClock } from '@paceline/clock/testing';
import type { LoadParameter, ModelIndexEntry } from '@paceline/protocol';
import { createLog, createMetrics, StatisticsRegistry, type Logger } from '@paceline/telemetry';
import { openAccess, type AccessPolicy } from '../access/access-policy.js';
import type { TlsSource } from '../access/tls-files.js';
import { createGatewayApp } from '../control/gateway.app.js';
import { SERVED_EXTENSIONS, type GatewayOptions } from '../control/gateway.options.js';
import { createGrpcServer, type GrpcServer } from '../grpc/grpc.server.js';
import { createHttpDataPlane, registerInferRoutes, type HttpDataPlane } from '../http/index.js';
import { InferService } from '../infer/infer-service.js';
import { createMetricsServer, type MetricsServer } from '../metrics/metrics.server.js';
import { catalogOf, FakeQueue, okFrame } from './fake-lane.js';
import { computeRecorded, RECORDED_MODELS } from './recorded-models.js';

export interface AccessRigOptions {
  /** Gets the rig's logger, for files that log. */
  readonly access?: (logger: Logger, clock: Clock) => AccessPolicy;
  readonly tls?: (logger: Logger, clock: Clock) => TlsSource;
  readonly clock?: Clock;
  readonly maxRequestBytes?: number;
  /** Told of each route of the HTTP application. */
  readonly onRoute?: (method: string, pattern: string) => void;
}

export class AccessRig {
  readonly queue = new FakeQueue();
  readonly loads: [string, Readonly<Record<string, LoadParameter>>][] = [];
  httpPort = 0;
  grpcPort = 0;
  metricsPort = 0;
  #folder = '';
  #app: NestFastifyApplication | undefined;
  #plane: HttpDataPlane | undefined;
  #grpc: GrpcServer | undefined;
  #metrics: MetricsServer | undefined;

  static async start(options: AccessRigOptions = {}): Promise<AccessRig> {
    const rig = new AccessRig();
    try {
      await rig.#start(options);
    } catch (error) {
      await rig.stop();
      throw error;
    }
    return rig;
  }

  async #start({
    access: makeAccess,
    tls: makeTls,
    clock = systemClock,
    maxRequestBytes = 1_000_000,
    onRoute,
  }: AccessRigOptions): Promise<void> {
    this.#folder = mkdtempSync(join(tmpdir(), 'paceline-rig-'));
    const { logger, settings: logSettings } = createLog({ verbose: 0, info: true, warning: true, error: true, file: this.#logFile });
    const access = makeAccess?.(logger, clock) ?? openAccess();
    const tls = makeTls?.(logger, clock);
    const catalog = catalogOf(...RECORDED_MODELS);
    const statistics = new StatisticsRegistry();
    const inferHandler = new InferService({ gateway: '0'.repeat(16), catalog, queue: this.queue, statistics, clock: new FakeClock() });
    this.queue.answer = (envelope) => inferHandler.onFrame(envelope.ref.number, okFrame(computeRecorded(envelope)));
    const options: GatewayOptions = {
      catalog,
      control: {
        index: () => RECORDED_MODELS.map(({ name, version }): ModelIndexEntry => ({ name, version, state: 'READY' })),
        load: async (name, parameters) => void this.loads.push([name, parameters]),
        unload: async () => undefined,
      },
      statistics,
      inferHandler,
      info: { name: 'paceline', version: '1.2.3', extensions: SERVED_EXTENSIONS, isLive: () => true, isReady: () => true },
      limits: { maxRequestBytes },
      logger,
      logSettings,
      access,
    };
    const shared = { inferHandler, catalog, logger };
    const registerRoutes = (fastify: Parameters<typeof registerInferRoutes>[0]): void => {
      fastify.addHook('onRoute', ({ method, url }) => {
        for (const one of [method].flat()) onRoute?.(one, url);
      });
      registerInferRoutes(fastify, { ...shared, maxInputBytes: maxRequestBytes });
    };
    this.#app = await createGatewayApp({ ...options, registerInferRoutes: registerRoutes });
    this.#plane = createHttpDataPlane({
      ...shared,
      fallbackServer: this.#app.getHttpServer(),
      limits: { maxInputBytes: maxRequestBytes },
      access,
      ...(tls && { tls }),
    });
    this.httpPort = (await this.#plane.listen('127.0.0.1', 0)).port;
    this.#grpc = createGrpcServer({ ...options, ...(tls && { tls }) });
    this.grpcPort = await this.#grpc.listen('127.0.0.1:0');
    this.#metrics = createMetricsServer(createMetrics({ statistics, tagsOf: () => ({}), processMetrics: false }), logger, access);
    this.metricsPort = await this.#metrics.listen(0, '127.0.0.1');
  }

  /** Every line of the log so far, parsed. */
  get log(): readonly Readonly<Record<string, unknown>>[] {
    return this.logText
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  get logText(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  get audit(): readonly Readonly<Record<string, unknown>>[] {
    return this.log.filter((line) => line['audit'] === true);
  }

  get #logFile(): string {
    return join(this.#folder, 'log');
  }

  /** One gRPC call with bytes. @returns the answer, or the error of the call */
  async grpc(
    method: string,
    request: Uint8Array = Buffer.alloc(0),
    headers: Readonly<Record<string, string>> = {},
    secure: ChannelCredentials = credentials.createInsecure(),
  ): Promise<Buffer | ServiceError> {
    const client = new Client(`localhost:${this.grpcPort}`, secure);
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const path = method.startsWith('/') ? method : `/inference.GRPCInferenceService/${method}`;
    try {
      return await new Promise<Buffer | ServiceError>((resolve) => {
        const bytes = (buffer: Buffer): Buffer => buffer;
        client.makeUnaryRequest(path, bytes, bytes, Buffer.from(request), metadata, { deadline: Date.now() + 10_000 }, (error, value) =>
          resolve(error ?? value!),
        );
      });
    } finally {
      client.close();
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.#plane?.close(0), this.#grpc?.close(0), this.#metrics?.close()]);
    await this.#app?.close();
    rmSync(this.#folder, { recursive: true });
  }
}
