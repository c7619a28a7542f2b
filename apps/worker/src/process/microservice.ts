/** Builds the worker's microservice and opens its port. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { listenError, NestLogger, type LinkTls } from '@paceline/nest-kit';
import type { Logger } from '@paceline/telemetry';
import { serverCredentialsOf, type ServedPorts } from '@paceline/worker-rpc';
import { WorkerGrpcServer } from './worker-grpc.server.js';
import { WorkerModule } from './worker.module.js';

export interface MicroserviceOptions {
  readonly ports: ServedPorts;
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly tls: LinkTls | undefined;
  readonly logger: Logger;
}

export interface WorkerMicroservice {
  readonly port: number;
  /** Cuts every connection. */
  close(): Promise<void>;
}

/** Listens when it resolves. @throws StartError where the port cannot be had */
export async function openMicroservice({ ports, host, port, tls, logger }: MicroserviceOptions): Promise<WorkerMicroservice> {
  const strategy = new WorkerGrpcServer({ host, port, credentials: serverCredentialsOf(tls) });
  const app = await NestFactory.createMicroservice(WorkerModule.register(ports), {
    strategy,
    logger: new NestLogger(logger),
    abortOnError: false,
  });
  try {
    await app.listen();
  } catch (error) {
    await app.close();
    throw listenError(error, 'schedulers', host, port, '--link-port');
  }
  return { port: strategy.boundPort, close: () => app.close() };
}
