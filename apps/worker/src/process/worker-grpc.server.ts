/**
 * The gRPC transport of the microservice: Nest's own, with a server that says which port it got, whose limits are those
 * of the stream between schedulers and workers, and which needs no .proto file.
 */
import { Server, type ServerCredentials } from '@grpc/grpc-js';
import { ServerGrpc, type GrpcOptions } from '@nestjs/microservices';
import { channelOptions, WORKER_PACKAGE, workerPackageDefinition } from '@paceline/worker-rpc';

export interface WorkerGrpcOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly credentials: ServerCredentials;
}

export class WorkerGrpcServer extends ServerGrpc {
  /** Where it listens; 0 before. */
  boundPort = 0;

  constructor(private readonly where: WorkerGrpcOptions) {
    super(nestOptions());
  }

  override async createClient(): Promise<Server> {
    const { host, port, credentials } = this.where;
    const server = new Server(channelOptions);
    this.boundPort = await new Promise<number>((resolve, reject) => {
      const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
      server.bindAsync(address, credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    return server;
  }
}

function nestOptions(): Readonly<Required<GrpcOptions>['options']> {
  return { package: WORKER_PACKAGE, packageDefinition: workerPackageDefinition };
}
