/**
 * Send times of a real service, scaled to any rate: the conversation requests of the Azure LLM inference trace of 2023
 * (Azure Public Dataset, CC BY 4.0; see traces/README.md).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH_FOLDER } from './paths.js';

const FILE = join(BENCH_FOLDER, 'traces/azure-llm-2023-conv.gaps');

/** Arrivals of the trace in milliseconds from the first one, ascending. */
export function conversationArrivalsMs(): Float64Array {
  const times = [0];
  let at = 0;
  let gap = 0;
  let shift = 0;
  for (const byte of readFileSync(FILE)) {
    gap |= (byte & 0x7f) << shift;
    shift += 7;
    if (byte >= 0x80) continue;
    times.push((at += gap));
    gap = shift = 0;
  }
  return Float64Array.from(times);
}

/** The trace with its time scaled so that the whole of it comes at `ratePerS`; it begins anew where `durationMs` is longer. */
export function conversationTimesMs(ratePerS: number, durationMs: number): Float64Array {
  const arrivals = conversationArrivalsMs();
  const lengthMs = (arrivals.length * 1000) / ratePerS;
  const scale = lengthMs / ((arrivals.at(-1) ?? 1) * (arrivals.length / (arrivals.length - 1)));
  const times: number[] = [];
  for (let i = 0; ; i++) {
    const at = Math.floor(i / arrivals.length) * lengthMs + (arrivals[i % arrivals.length] ?? 0) * scale;
    if (at >= durationMs) return Float64Array.from(times);
    times.push(at);
  }
}
