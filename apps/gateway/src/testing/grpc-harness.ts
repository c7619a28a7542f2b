/** For tests: the gRPC server over a handler that answers when the test says so, and a client with real messages. */
import { create, fromBinary, toBinary, type DescMessage, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, type CallOptions, type ServiceError } from '@grpc/grpc-js';
import { FakeClock } from '@paceline/clock/testing';
import type { InferRequest, LoadParameter, ReplyFrame } from '@paceline/protocol';
import { GRPCInferenceService, type ModelInferRequestSchema } from '@paceline/protocol/grpc';
import { createLog, SILENT, StatisticsRegistry } from '@paceline/telemetry';
import type { GatewayLimits } from '../control/gateway.options.js';
import { createGrpcServer } from '../grpc/grpc.server.js';
import { ByteBudget } from '../infer/byte-budget.js';
import type { TimeLimit } from '../infer/time-limit.js';
import type { InferHandler } from '../infer/infer-service.js';
import { catalogOf, fakeModel, okFrame } from './fake-lane.js';

const add = fakeModel({
  name: 'add_sub',
  inputs: [
    ['INPUT0', 'INT32', [-1, 16]],
    ['INPUT1', 'INT32', [-1, 16]],
  ],
});
const ident = fakeModel({ name: 'identity', inputs: [['INPUT0', 'FP32', [-1, -1]]] });
const repeat = fakeModel({ name: 'repeat', maxBatchSize: 0, inputs: [['IN', 'INT32', [-1]]], decoupled: true });
const catalog = catalogOf(add, ident, repeat);

export interface Held {
  readonly request: InferRequest;
  readonly reply: (frame: ReplyFrame) => void;
  cancelled: boolean;
}

/** Keeps each request until the test answers it; `onInfer` is told of each. */
export class HeldHandler implements InferHandler {
  readonly held: Held[] = [];
  onInfer: ((held: Held) => void) | undefined;
  onCancel: (() => void) | undefined;

  onLimit: ((limit: TimeLimit | undefined) => void) | undefined;

  infer(request: InferRequest, onReply: (frame: ReplyFrame) => void, limit?: TimeLimit): ReturnType<InferHandler['infer']> {
    this.onLimit?.(limit);
    const held: Held = { request, reply: onReply, cancelled: false };
    this.held.push(held);
    queueMicrotask(() => this.onInfer?.(held));
    return {
      model: catalog.resolve(request.modelName, request.modelVersion),
      number: this.held.length,
      rows: 1,
      cancel: () => {
        held.cancelled = true;
        this.onCancel?.();
      },
    };
  }
}

export const echo = (held: Held): void => held.reply(okFrame(held.request.inputs.map((input, i) => ({ ...input, name: `OUTPUT${i}` }))));
export const int32 = (...values: number[]): Buffer => Buffer.from(Int32Array.from(values).buffer);
export const row = Array.from({ length: 16 }, (_, i) => i);

export type InferInit = MessageInitShape<typeof ModelInferRequestSchema>;

/** A good request to `add_sub`, unless changed. */
export const addRequest = (more: InferInit = {}): InferInit => ({
  modelName: 'add_sub',
  inputs: [
    { name: 'INPUT0', datatype: 'INT32', shape: [1n, 16n] },
    { name: 'INPUT1', datatype: 'INT32', shape: [1n, 16n] },
  ],
  rawInputContents: [int32(...row), int32(...row)],
  ...more,
});

/** The error of a call that must fail. */
export const failure = async (promise: Promise<unknown>): Promise<ServiceError> =>
  promise.then(
    () => {
      throw new Error('the call succeeded');
    },
    (error: ServiceError) => error,
  );

type Methods = typeof GRPCInferenceService.method;

export class GrpcHarness {
  ready = true;
  /** Whether the models have healthy instances. */
  healthy = true;
  readonly handler = new HeldHandler();
  readonly clock = new FakeClock();
  readonly loads: [string, Readonly<Record<string, LoadParameter>>][] = [];
  readonly unloads: [string, boolean][] = [];
  readonly log = createLog(SILENT);
  readonly statistics = new StatisticsRegistry();
  readonly budget = new ByteBudget(this.limits.maxBufferedBytes ?? 1e9, this.clock);
  readonly server = createGrpcServer({
    budget: this.budget,
    catalog: { ...catalog, isHealthy: () => this.healthy },
    control: {
      index: () => [
        { name: 'add_sub', version: '1', state: 'READY' },
        { name: 'broken', version: '1', state: 'UNAVAILABLE', reason: 'no file' },
      ],
      load: async (name, parameters) => void this.loads.push([name, parameters]),
      unload: async (name, { unloadDependents }) => void this.unloads.push([name, unloadDependents]),
    },
    statistics: this.statistics,
    inferHandler: this.handler,
    info: { name: 'paceline', version: '1.2.3', extensions: ['statistics'], isLive: () => true, isReady: () => this.ready },
    limits: { maxRequestBytes: 1_000_000, ...this.limits },
    logger: this.log.logger,
    logSettings: this.log.settings,
    clock: this.clock,
  });

  client: Client;
  address: string;

  constructor(private readonly limits: Partial<GatewayLimits> = {}) {}

  async start(): Promise<void> {
    this.address = `127.0.0.1:${await this.server.listen('127.0.0.1:0')}`;
    this.client = new Client(this.address, credentials.createInsecure(), { 'grpc.max_receive_message_length': -1 });
  }

  async stop(): Promise<void> {
    this.client.close();
    const closed = this.server.close(0);
    this.clock.advance(1);
    await closed;
  }

  bytesCall(path: string, bytes: Uint8Array, metadata = new Metadata(), options: CallOptions = {}): Promise<Buffer> {
    return new Promise((resolve, reject) =>
      this.client.makeUnaryRequest(
        path,
        (b: Buffer) => b,
        (b: Buffer) => b,
        Buffer.from(bytes),
        metadata,
        options,
        (error, value) => (error ? reject(error) : resolve(value!)),
      ),
    );
  }

  async call<K extends Exclude<keyof Methods, 'modelStreamInfer'>>(
    name: K,
    init: MessageInitShape<Methods[K]['input']>,
    metadata?: Metadata,
    options?: CallOptions,
  ): Promise<MessageShape<Methods[K]['output']>> {
    const method = GRPCInferenceService.method[name] as { input: DescMessage; output: DescMessage; name: string };
    const message = toBinary(method.input, create(method.input, init as never));
    return fromBinary(
      method.output,
      await this.bytesCall(`/inference.GRPCInferenceService/${method.name}`, message, metadata, options),
    ) as never;
  }
}
