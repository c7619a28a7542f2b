/** One log line per change of a model's state: when it is ready with what it was given, when it is not and why. */
import type { Logger } from '@paceline/telemetry';
import type { ModelEvent, ModelEventListener } from '../placement/model-events.js';

export function modelEventLog(logger: Logger): ModelEventListener {
  return (event) => {
    const { model, version, state, instances, warmup } = event;
    for (const warning of event.warnings) logger.warn({ model, version }, warning);
    if (state === 'READY') {
      const warmed = warmup && { warmupSamples: warmup.samples, warmupRuns: warmup.runs, warmupMs: Math.round(warmup.durationMs) };
      logger.info({ model, version, instances, loadMs: Math.round(event.loadMs), ...warmed }, 'model ready');
    } else if (failed(event)) logger.error({ model, version, reason: event.reason }, 'model failed to load');
    else logger.debug({ model, version, state, reason: event.reason }, 'model state');
  };
}

function failed({ state, reason }: ModelEvent): boolean {
  return state === 'UNAVAILABLE' && reason !== 'unloaded';
}
