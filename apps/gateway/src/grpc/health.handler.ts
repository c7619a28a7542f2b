/**
 * grpc.health.v1 over the server's readiness. As in Triton the service name does not matter: the server is ready or not.
 * Watch looks once a second and reports changes.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import type { ServerWritableStream } from '@grpc/grpc-js';
import type { Clock, Timer } from '@paceline/clock';
import { HealthCheckResponse_ServingStatus as ServingStatus, HealthCheckResponseSchema } from '@paceline/protocol/health';
import type { ServerInfo } from '../control/gateway.options.js';
import type { RawUnaryHandler } from './infer.handler.js';
import type { Shutdown } from './shutdown.js';

const WATCH_INTERVAL_US = 1_000_000;

const encode = (ready: boolean): Buffer =>
  Buffer.from(
    toBinary(
      HealthCheckResponseSchema,
      create(HealthCheckResponseSchema, { status: ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING }),
    ),
  );

export function healthCheck(info: ServerInfo): RawUnaryHandler {
  return (_call, callback) => callback(null, encode(info.isReady()));
}

export function healthWatch(info: ServerInfo, clock: Clock, shutdown: Shutdown): (stream: ServerWritableStream<Buffer, Buffer>) => void {
  return (stream) => {
    let reported: boolean | undefined;
    let timer: Timer | undefined;
    const look = (): void => {
      const ready = info.isReady();
      if (ready !== reported) stream.write(encode(ready));
      reported = ready;
      timer = clock.setTimer(WATCH_INTERVAL_US, look);
    };
    stream.on('cancelled', () => timer?.cancel());
    stream.once(
      'close',
      shutdown.onShutdown(() => {
        timer?.cancel();
        stream.end();
      }),
    );
    if (!stream.writableEnded) look();
  };
}
