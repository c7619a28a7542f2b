/** Opens what sends spans, where the command line asks for it. */
import { systemClock } from '@paceline/clock';
import type { ServeOptions } from '@paceline/config';
import { openOtlpTracing, type Logger, type OtlpTracingOptions, type Tracing } from '@paceline/telemetry';

/** @returns undefined where no spans are wanted. The collector need not be there. */
export async function openTracing(
  { tracing: { endpoint, sampleRate } }: Pick<ServeOptions, 'tracing'>,
  process: Pick<OtlpTracingOptions, 'service' | 'instance' | 'version'>,
  logger: Logger,
): Promise<Tracing | undefined> {
  return endpoint === undefined ? undefined : await openOtlpTracing({ endpoint, sampleRate, ...process, clock: systemClock, logger });
}
