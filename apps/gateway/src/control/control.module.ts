/** Joins the control routes to the ports they read and change. */
import { Module, type DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ErrorFilter } from './error.filter.js';
import type { GatewayOptions } from './gateway.options.js';
import { HealthController } from './health.controller.js';
import { LoggingController } from './logging.controller.js';
import { ModelController } from './model.controller.js';
import { RepositoryController } from './repository.controller.js';
import { ServerController } from './server.controller.js';
import { TraceController } from './trace.controller.js';
import {
  GATEWAY_LIMITS,
  GATEWAY_LOGGER,
  INFER_HANDLER,
  LOG_SETTINGS,
  MODEL_CATALOG,
  MODEL_CONTROL,
  SERVER_INFO,
  STATISTICS,
} from './tokens.js';

@Module({})
export class ControlModule {
  static register(options: GatewayOptions): DynamicModule {
    return {
      module: ControlModule,
      controllers: [HealthController, ServerController, ModelController, RepositoryController, LoggingController, TraceController],
      providers: [
        { provide: MODEL_CATALOG, useValue: options.catalog },
        { provide: MODEL_CONTROL, useValue: options.control },
        { provide: STATISTICS, useValue: options.shownStatistics ?? options.statistics },
        { provide: INFER_HANDLER, useValue: options.inferHandler },
        { provide: SERVER_INFO, useValue: options.info },
        { provide: GATEWAY_LOGGER, useValue: options.logger },
        { provide: GATEWAY_LIMITS, useValue: options.limits },
        { provide: LOG_SETTINGS, useValue: options.logSettings },
        { provide: APP_FILTER, useClass: ErrorFilter },
      ],
    };
  }
}
