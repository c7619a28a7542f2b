/**
 * Counts what happens inside the measured window, in HDR histograms of three significant digits (nanoseconds).
 * Answers outside the window are not counted, whenever their requests were sent.
 */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { LatencySummary, LoadResult } from './load-plan.js';

const TEN_MINUTES_NS = 600e9;

function histogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: TEN_MINUTES_NS, figures: 3 });
}

function summary(recorded: RecordableHistogram): LatencySummary {
  const ms = (percentile: number): number => (recorded.count === 0 ? Number.NaN : recorded.percentile(percentile) / 1e6);
  return { p50Ms: ms(50), p90Ms: ms(90), p99Ms: ms(99), maxMs: recorded.count === 0 ? Number.NaN : recorded.max / 1e6 };
}

export class Recorder {
  private readonly latency = histogram();
  private readonly lag = histogram();
  private readonly refusals = histogram();
  private within = 0;
  private open = false;
  private failed = 0;
  private firstFailure: string | undefined;
  private openedAtMs = 0;
  private cpuAtOpen = process.cpuUsage();

  /** @param objectiveMs answers within it are counted as well */
  constructor(private readonly objectiveMs?: number) {}

  openWindow(): void {
    this.open = true;
    this.openedAtMs = performance.now();
    this.cpuAtOpen = process.cpuUsage();
  }

  /** `sinceMs` and `untilMs` on the clock of `performance.now()`. */
  succeeded(sinceMs: number, untilMs: number): void {
    if (!this.open) return;
    this.latency.record(Math.max(1, Math.round((untilMs - sinceMs) * 1e6)));
    if (untilMs - sinceMs <= (this.objectiveMs ?? 0)) this.within++;
  }

  refused(sinceMs: number, untilMs: number): void {
    if (this.open) this.refusals.record(Math.max(1, Math.round((untilMs - sinceMs) * 1e6)));
  }

  sent(dueMs: number, nowMs: number): void {
    if (this.open) this.lag.record(Math.max(1, Math.round((nowMs - dueMs) * 1e6)));
  }

  /** Counted even outside the window: a server that fails during the warm-up fails. */
  failure(what: string): void {
    this.failed++;
    this.firstFailure ??= what;
  }

  closeWindow(): LoadResult {
    this.open = false;
    const elapsedMs = performance.now() - this.openedAtMs;
    const cpu = process.cpuUsage(this.cpuAtOpen);
    return {
      answered: this.latency.count,
      failed: this.failed,
      firstFailure: this.firstFailure,
      elapsedMs,
      ratePerS: (this.latency.count * 1000) / elapsedMs,
      latency: summary(this.latency),
      refused: this.refusals.count > 0 ? { count: this.refusals.count, latency: summary(this.refusals) } : undefined,
      withinObjective: this.objectiveMs === undefined ? undefined : this.within / (this.latency.count + this.refusals.count),
      sendLag: this.lag.count > 0 ? summary(this.lag) : undefined,
      generatorCpuShare: (cpu.user + cpu.system) / 1000 / elapsedMs,
    };
  }
}
