/**
 * The gRPC front end: one grpc-js server for inference.GRPCInferenceService and grpc.health.v1. Every method is registered
 * over raw bytes; only control methods go through generated messages.
 */
import { fromBinary, toBinary, type DescMethod, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import {
  Server,
  type StatusObject,
  type UntypedHandleCall,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { systemClock, type Clock } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';
import { GRPCInferenceService } from '@paceline/protocol/grpc';
import { Health } from '@paceline/protocol/health';
import { openAccess, type AccessPolicy } from '../access/access-policy.js';
import { actionOfMethod } from '../access/actions.js';
import type { Grant } from '../access/grant.js';
import { admitCall, audited } from '../access/grpc-access.js';
import { serverCredentials } from '../access/grpc-credentials.js';
import type { TlsSource } from '../access/tls-files.js';
import { DEFAULT_LIMITS, type GatewayOptions } from '../control/gateway.options.js';
import { ByteBudget } from '../infer/byte-budget.js';
import { controlHandlers } from './control.handlers.js';
import { toGrpcStatus } from './grpc-status.js';
import { healthCheck, healthWatch } from './health.handler.js';
import { modelStreamInfer } from './infer-stream.handler.js';
import { modelInfer, type RawUnaryHandler } from './infer.handler.js';
import { Shutdown } from './shutdown.js';
import { StreamGuard } from './stream-guard.js';

export interface GrpcServerOptions extends GatewayOptions {
  readonly clock?: Clock;
  /** Memory for messages, shared with other protocols; one of its own without it. */
  readonly budget?: ByteBudget;
  /** Certificates of the port; without them it is not encrypted. */
  readonly tls?: TlsSource;
}

export interface GrpcServer {
  /** Open connections. */
  readonly connectionCount: number;
  /** @param address host and port, e.g. `0.0.0.0:8001`; port 0 picks one. @returns the port. Rejects where it is taken. */
  listen(address: string): Promise<number>;
  /** Ends streams after what they had asked, and sends clients elsewhere; new calls are still answered. */
  beginDrain(): void;
  /** Refuses new calls, waits for those under way at most `drainMs` milliseconds, then cuts the rest off. */
  close(drainMs: number): Promise<void>;
}

const identity = (bytes: Buffer): Buffer => bytes;

export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const access = options.access ?? openAccess();
  const clock = options.clock ?? systemClock;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const server = new Server({
    'grpc.max_receive_message_length': limits.maxRequestBytes,
    'grpc.max_send_message_length': -1,
    'grpc.enable_channelz': 0,
    'grpc.max_concurrent_streams': limits.maxConcurrentStreams,
  });
  const guard = new StreamGuard({
    maxMessageBytes: limits.maxRequestBytes,
    maxConnections: limits.maxConnections,
    stallTimeoutS: limits.stallTimeoutS,
    budget: options.budget ?? new ByteBudget(limits.maxBufferedBytes, clock),
    onRefused: (reason) => options.statistics.unknownModel.recordRefusal(reason),
  });
  const shutdown = new Shutdown();
  server.addService(definitionOf(GRPCInferenceService), inferenceService(options, access, shutdown));
  server.addService(definitionOf(Health), healthService(options, access, clock, shutdown));
  return {
    listen: (address) =>
      new Promise((resolve, reject) => {
        server.bindAsync(address, serverCredentials(options.tls), (error, port) => {
          if (error) return reject(error);
          guard.watch(server);
          resolve(port);
        });
      }),
    get connectionCount() {
      return guard.connectionCount;
    },
    beginDrain: () => {
      shutdown.begin();
      guard.beginDrain();
    },
    close: (drainMs) =>
      new Promise((resolve) => {
        shutdown.begin();
        const timer = clock.setTimer(drainMs * 1000, () => server.forceShutdown());
        server.tryShutdown(() => {
          timer.cancel();
          resolve();
        });
      }),
  };
}

/** grpc-js's form of a generated service, with bytes for messages. */
function definitionOf(service: { readonly typeName: string; readonly methods: readonly DescMethod[] }): ServiceDefinition {
  return Object.fromEntries(
    service.methods.map((method) => [
      method.localName,
      {
        path: `/${service.typeName}/${method.name}`,
        requestStream: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
        responseStream: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
        requestSerialize: identity,
        requestDeserialize: identity,
        responseSerialize: identity,
        responseDeserialize: identity,
      },
    ]),
  );
}

function healthService(options: GatewayOptions, access: AccessPolicy, clock: Clock, shutdown: Shutdown): UntypedServiceImplementation {
  const check = healthCheck(options.info);
  const watch = healthWatch(options.info, clock, shutdown);
  const refusalOf = (
    method: string,
    call: Parameters<typeof watch>[0] | Parameters<typeof check>[0],
  ): Partial<StatusObject> | undefined => {
    try {
      admitCall(access, actionOfMethod(method), call);
      return undefined;
    } catch (error) {
      return toGrpcStatus(error, options.logger, `Health.${method}`);
    }
  };
  const guarded = {
    check: ((call, callback) => {
      const refusal = refusalOf('check', call);
      if (refusal) callback(refusal);
      else check(call, callback);
    }) satisfies typeof check,
    watch: ((stream) => {
      const refusal = refusalOf('watch', stream);
      if (refusal) stream.emit('error', refusal);
      else watch(stream);
    }) satisfies typeof watch,
  };
  return guarded;
}

function inferenceService(options: GatewayOptions, access: AccessPolicy, shutdown: Shutdown): UntypedServiceImplementation {
  const methods: Record<string, UntypedHandleCall> = {};
  // Each handler takes the message of the method it is named after, which a map by name cannot say.
  const control = new Map(Object.entries(controlHandlers(options)) as unknown as [string, AnyHandler][]);
  for (const method of GRPCInferenceService.methods) {
    const handler = control.get(method.localName);
    methods[method.localName] = handler ? overBytes(method, handler, options, access) : unimplemented(method, options, access);
  }
  return { ...methods, modelInfer: modelInfer(options), modelStreamInfer: modelStreamInfer(options, shutdown) };
}

type AnyMessage = MessageShape<DescMessage>;
type AnyHandler = (request: AnyMessage, grant: Grant) => AnyMessage | Promise<AnyMessage>;

function overBytes(method: DescMethod, handler: AnyHandler, { logger }: GatewayOptions, access: AccessPolicy): RawUnaryHandler {
  const action = actionOfMethod(method.localName);
  const parse = (bytes: Buffer): AnyMessage => {
    try {
      return fromBinary(method.input, bytes);
    } catch (error) {
      throw new ServingError('INVALID_ARGUMENT', 'Unable to parse request', { reason: 'malformed_message', cause: error });
    }
  };
  return (call, callback) => {
    let who = 'anonymous';
    let target = '';
    const answer = async (): Promise<Buffer> => {
      const grant = admitCall(access, action, call);
      who = grant.who;
      const request = parse(call.request);
      target = modelOf(request);
      if (target !== '') grant.requireModel(target);
      return Buffer.from(toBinary(method.output, await handler(request, grant)));
    };
    const asked = { logger, action, call, who: () => who, target: () => target };
    (action?.manages ? audited(asked, answer) : answer()).then(
      (bytes) => callback(null, bytes),
      (error: unknown) => callback(toGrpcStatus(error, logger, method.name)),
    );
  };
}

/** The model that a message names, under either of the names that the protocol has for it; "" = none. */
function modelOf(message: AnyMessage): string {
  const { name, modelName } = message as { readonly name?: unknown; readonly modelName?: unknown };
  const model = modelName ?? name;
  return typeof model === 'string' ? model : '';
}

function unimplemented({ name, localName }: DescMethod, { logger }: GatewayOptions, access: AccessPolicy): RawUnaryHandler {
  return (call, callback) => {
    try {
      admitCall(access, actionOfMethod(localName), call);
      throw new ServingError('UNIMPLEMENTED', `${name} is not served by this server`, { reason: 'not_served' });
    } catch (error) {
      callback(toGrpcStatus(error, logger, name));
    }
  };
}
