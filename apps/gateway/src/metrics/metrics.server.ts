/** The metrics port of a gateway: who may scrape follows from its access policy. */
import { createMetricsServer as createOpenMetricsServer, type MetricsServer } from '@paceline/nest-kit';
import type { Logger, Metrics } from '@paceline/telemetry';
import { openAccess, type AccessPolicy } from '../access/access-policy.js';
import { METRICS } from '../access/actions.js';

export type { MetricsServer };

/** @param access who may scrape; everybody without it */
export function createMetricsServer(metrics: Metrics, logger: Logger, access: AccessPolicy = openAccess()): MetricsServer {
  return createOpenMetricsServer({ metrics, logger, authorize: (header) => void access.authorize('http', METRICS, header) });
}
