/** Takes the calls of schedulers. A raw call handler: the messages are bytes, and the stream is handled beside Nest. */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { Controller, Inject } from '@nestjs/common';
import { GrpcStreamCall } from '@nestjs/microservices';
import { CONNECT_METHOD, serveScheduler, WORKER_SERVICE, type ServedPorts } from '@paceline/worker-rpc';

export const SERVED_PORTS = Symbol('SERVED_PORTS');

@Controller()
export class ConnectController {
  constructor(@Inject(SERVED_PORTS) private readonly ports: ServedPorts) {}

  @GrpcStreamCall(WORKER_SERVICE, CONNECT_METHOD)
  connect(call: ServerDuplexStream<Buffer, Buffer>): void {
    serveScheduler(call, this.ports);
  }
}
