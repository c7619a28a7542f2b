/** What may be read of a model: metadata, readiness, configuration, statistics. Reading costs no I/O. */
import { Controller, Get, Inject, NotFoundException, Param, Req, Res } from '@nestjs/common';
import { modelConfigToJson } from '@paceline/core';
import { ServingError, type ModelCatalog } from '@paceline/protocol';
import type { StatisticsReader } from '@paceline/telemetry';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { grantOf } from '../access/http-access.js';
import { MODEL_CATALOG, STATISTICS } from './tokens.js';
import { modelMetadata, type ModelMetadata } from './views/model-metadata.js';
import { modelStatistics, type ModelStatisticsView } from './views/model-statistics.js';

interface StatisticsAnswer {
  readonly model_stats: readonly ModelStatisticsView[];
}

/** Paths take versions of digits only; anything else is no path. */
function versionOf(path: string | undefined): string {
  if (path === undefined) return '';
  if (!/^\d+$/.test(path)) throw new NotFoundException();
  return path;
}

@Controller('v2/models')
export class ModelController {
  constructor(
    @Inject(MODEL_CATALOG) private readonly catalog: ModelCatalog,
    @Inject(STATISTICS) private readonly statistics: StatisticsReader,
  ) {}

  @Get('stats')
  allStatistics(@Req() request: FastifyRequest): StatisticsAnswer {
    const grant = grantOf(request.raw);
    return { model_stats: modelStatistics(this.catalog, this.statistics, '', '').filter(({ name }) => grant.mayUse(name)) };
  }

  @Get([':name', ':name/versions/:version'])
  metadata(@Param('name') name: string, @Param('version') version?: string): ModelMetadata {
    return modelMetadata(this.catalog, name, versionOf(version));
  }

  @Get([':name/ready', ':name/versions/:version/ready'])
  ready(@Res() reply: FastifyReply, @Param('name') name: string, @Param('version') version?: string): void {
    const wanted = versionOf(version);
    let healthy: boolean;
    try {
      healthy = this.catalog.isHealthy(this.catalog.resolve(name, wanted));
    } catch (error) {
      if (!(error instanceof ServingError)) throw error;
      throw new ServingError('INVALID_ARGUMENT', 'Model version not ready', { reason: 'model_not_ready', cause: error });
    }
    if (!healthy) throw new ServingError('INVALID_ARGUMENT', 'Model version not ready', { reason: 'no_healthy_instance' });
    void reply.code(200).type('text/plain').send('');
  }

  @Get([':name/config', ':name/versions/:version/config'])
  config(@Param('name') name: string, @Param('version') version?: string): unknown {
    return modelConfigToJson(this.catalog.resolve(name, versionOf(version)).config);
  }

  @Get([':name/stats', ':name/versions/:version/stats'])
  stats(@Param('name') name: string, @Param('version') version?: string): StatisticsAnswer {
    return { model_stats: modelStatistics(this.catalog, this.statistics, name, versionOf(version)) };
  }
}
