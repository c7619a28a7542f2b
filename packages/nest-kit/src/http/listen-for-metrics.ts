/** Opens the metrics port as the flags say. */
import type { ServeOptions } from '@paceline/config';
import { listenError } from '../process/start-error.js';
import type { MetricsServer } from './metrics.server.js';

/**
 * @returns the port, as it was bound; undefined where metrics are switched off
 * @throws StartError naming the flag when it cannot be had
 */
export async function listenForMetrics(
  server: MetricsServer,
  { enabled, address, port }: ServeOptions['metrics'],
): Promise<number | undefined> {
  if (!enabled) return undefined;
  try {
    return await server.listen(port, address);
  } catch (error) {
    throw listenError(error, 'metrics', address, port, '--metrics-port');
  }
}
