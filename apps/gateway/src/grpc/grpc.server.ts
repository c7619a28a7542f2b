/**
 * The gRPC front end: one grpc-js server for inference.GRPCInferenceService and grpc.health.v1. Every method is registered
 * over raw bytes; only control methods go through generated messages.
 */
import { fromBinary, toBinary, type DescMethod, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import {
  Server,
  ServerCredentials,
  type UntypedHandleCall,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { systemClock, type Clock } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';
import { GRPCInferenceService } from '@paceline/protocol/grpc';
import { Health } from '@paceline/protocol/health';
import type { GatewayOptions } from '../control/gateway.options.js';
import type { ManagementCaller } from '../control/management-access.js';
import { controlHandlers } from './control.handlers.js';
import { toGrpcStatus } from './grpc-status.js';
import { healthCheck, healthWatch } from './health.handler.js';
import { modelStreamInfer } from './infer-stream.handler.js';
import { modelInfer, type RawUnaryHandler } from './infer.handler.js';
import { Shutdown } from './shutdown.js';

export interface GrpcServerOptions extends GatewayOptions {
  readonly clock?: Clock;
}

export interface GrpcServer {
  /** @param address host and port, e.g. `0.0.0.0:8001`; port 0 picks one. @returns the port. Rejects where it is taken. */
  listen(address: string): Promise<number>;
  /** Refuses new calls, waits for those under way at most `drainMs` milliseconds, then cuts the rest off. */
  close(drainMs: number): Promise<void>;
}

const identity = (bytes: Buffer): Buffer => bytes;

export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const clock = options.clock ?? systemClock;
  const server = new Server({
    'grpc.max_receive_message_length': options.limits.maxRequestBytes,
    'grpc.max_send_message_length': -1,
    'grpc.enable_channelz': 0,
  });
  const shutdown = new Shutdown();
  server.addService(definitionOf(GRPCInferenceService), inferenceService(options, shutdown));
  server.addService(definitionOf(Health), { check: healthCheck(options.info), watch: healthWatch(options.info, clock, shutdown) });
  return {
    listen: (address) =>
      new Promise((resolve, reject) => {
        server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => (error ? reject(error) : resolve(port)));
      }),
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

function inferenceService(options: GatewayOptions, shutdown: Shutdown): UntypedServiceImplementation {
  const methods: Record<string, UntypedHandleCall> = {};
  // Each handler takes the message of the method it is named after, which a map by name cannot say.
  const control = new Map(Object.entries(controlHandlers(options)) as unknown as [string, AnyHandler][]);
  for (const method of GRPCInferenceService.methods) {
    const handler = control.get(method.localName);
    methods[method.localName] = handler ? overBytes(method, handler, options) : unimplemented(method.name, options);
  }
  return { ...methods, modelInfer: modelInfer(options), modelStreamInfer: modelStreamInfer(options, shutdown) };
}

type AnyMessage = MessageShape<DescMessage>;
type AnyHandler = (request: AnyMessage, caller: () => ManagementCaller) => AnyMessage | Promise<AnyMessage>;

function overBytes(method: DescMethod, handler: AnyHandler, { logger }: GatewayOptions): RawUnaryHandler {
  const parse = (bytes: Buffer): AnyMessage => {
    try {
      return fromBinary(method.input, bytes);
    } catch (error) {
      throw new ServingError('INVALID_ARGUMENT', 'Unable to parse request', { reason: 'malformed_message', cause: error });
    }
  };
  return (call, callback) => {
    const caller = (): ManagementCaller => ({
      remoteAddress: call.getPeer().replace(/:\d+$/, ''),
      host: call.getHost(),
      headerNames: Object.keys(call.metadata.getMap()),
    });
    const answer = async (): Promise<Buffer> => Buffer.from(toBinary(method.output, await handler(parse(call.request), caller)));
    answer().then(
      (bytes) => callback(null, bytes),
      (error: unknown) => callback(toGrpcStatus(error, logger, method.name)),
    );
  };
}

function unimplemented(name: string, { logger }: GatewayOptions): RawUnaryHandler {
  return (_call, callback) =>
    callback(
      toGrpcStatus(new ServingError('UNIMPLEMENTED', `${name} is not served by this server`, { reason: 'not_served' }), logger, name),
    );
}
