/** For tests: the whole HTTP data plane on a real port, over a lane that answers at once or when told. */
import type { AddressInfo } from 'node:net';
import { FakeClock } from '@paceline/clock/testing';
import type { Clock } from '@paceline/clock';
import { createLogger, SILENT, StatisticsRegistry } from '@paceline/telemetry';
import Fastify, { type FastifyInstance } from 'fastify';
import {
  createHttpDataPlane,
  DEFAULT_DATA_PLANE_LIMITS,
  registerInferRoutes,
  type DataPlaneLimits,
  type HttpDataPlane,
  type JsonOffload,
} from '../http/index.js';
import { ByteBudget } from '../infer/byte-budget.js';
import { InferService } from '../infer/infer-service.js';
import { catalogOf, FakeQueue, okFrame } from './fake-lane.js';
import { computeRecorded, RECORDED_MODELS } from './recorded-models.js';

export interface TestServer {
  readonly port: number;
  /** The same route on Fastify alone, listening by itself. */
  readonly fastifyPort: number;
  readonly queue: FakeQueue;
  readonly service: InferService;
  readonly plane: HttpDataPlane;
  readonly fastify: FastifyInstance;
  /** Of the service and of the time that clients grant. */
  readonly serviceClock: FakeClock;
  /** Answers the oldest request that has not been answered. */
  answerNext(): void;
  close(): Promise<void>;
}

export interface TestServerOptions {
  readonly limits?: Partial<DataPlaneLimits>;
  /** Answer each request as it comes; else the test calls `answerNext`. */
  readonly auto?: boolean;
  /** Of the data plane's ticks. */
  readonly clock?: Clock;
  readonly offload?: JsonOffload;
}

function fallback(options: Parameters<typeof registerInferRoutes>[1]): FastifyInstance {
  const fastify = Fastify({ forceCloseConnections: true });
  registerInferRoutes(fastify, options);
  fastify.get('/v2/health/live', (_request, reply) => reply.code(200).send());
  return fastify;
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const queue = new FakeQueue();
  const serviceClock = new FakeClock();
  const catalog = catalogOf(...RECORDED_MODELS);
  const service = new InferService({
    gateway: '0'.repeat(16),
    catalog,
    queue,
    statistics: new StatisticsRegistry(),
    clock: serviceClock,
  });
  const answer = (envelope: FakeQueue['enqueued'][number]): void =>
    service.onFrame(envelope.ref.number, okFrame(computeRecorded(envelope)));
  if (options.auto !== false) queue.answer = answer;
  const logger = createLogger(SILENT);
  const shared = { inferHandler: service, catalog, logger, ...(options.offload && { offload: options.offload }) };
  const maxInputBytes = options.limits?.maxInputBytes;
  const budget = new ByteBudget(options.limits?.maxBufferedBytes ?? DEFAULT_DATA_PLANE_LIMITS.maxBufferedBytes);
  const routes = { ...shared, budget, clock: serviceClock, ...(maxInputBytes !== undefined && { maxInputBytes }) };
  const behind = fallback(routes);
  await behind.ready();
  const alone = fallback(routes);
  await alone.listen({ host: '127.0.0.1', port: 0 });
  const plane = createHttpDataPlane({
    ...shared,
    fallbackServer: behind.server,
    budget,
    routeClock: serviceClock,
    ...(options.limits && { limits: options.limits }),
    ...(options.clock && { clock: options.clock }),
  });
  const { port } = await plane.listen('127.0.0.1', 0);
  let answered = 0;
  return {
    port,
    fastifyPort: (alone.server.address() as AddressInfo).port,
    queue,
    service,
    plane,
    fastify: behind,
    serviceClock,
    answerNext: () => answer(queue.enqueued[answered++] as (typeof queue.enqueued)[number]),
    close: async () => {
      await plane.close(0);
      await behind.close();
      await alone.close();
    },
  };
}
