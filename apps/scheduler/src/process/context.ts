/** The Nest application context of a scheduler: what it is made of, under explicit tokens, for whoever extends the process. */
import 'reflect-metadata';
import { Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { NestLogger } from '@paceline/nest-kit';
import type { Logger } from '@paceline/telemetry';
import type { ClusterScheduler } from './cluster-scheduler.js';

/** The {@link ClusterScheduler}. */
export const SCHEDULER = Symbol('scheduler');

@Module({})
export class SchedulerModule {
  static register(scheduler: ClusterScheduler): DynamicModule {
    return { module: SchedulerModule, providers: [{ provide: SCHEDULER, useValue: scheduler }], exports: [SCHEDULER] };
  }
}

/** @returns the context; closing it closes no port, since a scheduler listens nowhere */
export function openContext(scheduler: ClusterScheduler, logger: Logger): Promise<INestApplicationContext> {
  return NestFactory.createApplicationContext(SchedulerModule.register(scheduler), { logger: new NestLogger(logger), abortOnError: false });
}
