/** The microservice of a worker: one controller, and the ports that its calls are served with. */
import { Module, type DynamicModule } from '@nestjs/common';
import type { ServedPorts } from '@paceline/worker-rpc';
import { ConnectController, SERVED_PORTS } from './connect.controller.js';

@Module({})
export class WorkerModule {
  static register(ports: ServedPorts): DynamicModule {
    return {
      module: WorkerModule,
      controllers: [ConnectController],
      providers: [{ provide: SERVED_PORTS, useValue: ports }],
    };
  }
}
