/** Triton's families about the machine: CPU use since the last scrape, and memory. */
import { cpus, freemem, totalmem } from 'node:os';
import type { Registry } from 'prom-client';
import { ScrapedMetric, type Series } from './scraped-metric.js';

interface CpuTimes {
  readonly busyMs: number;
  readonly totalMs: number;
}

function cpuTimes(): CpuTimes {
  let idleMs = 0;
  let totalMs = 0;
  for (const { times } of cpus()) {
    idleMs += times.idle;
    totalMs += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { busyMs: totalMs - idleMs, totalMs };
}

/** @param read the machine's CPU times; tests give their own. */
export function registerHostMetrics(registry: Registry, read: () => CpuTimes = cpuTimes): void {
  let last = read();
  let utilisation = 0;
  const gauge = (name: string, help: string, value: () => number): void => {
    new ScrapedMetric(registry, { name, help, type: 'gauge', read: (): Iterable<Series> => [{ labels: {}, value: value() }] });
  };
  gauge('nv_cpu_utilization', 'CPU utilization rate [0.0 - 1.0]', () => {
    const now = read();
    if (now.totalMs > last.totalMs) {
      utilisation = (now.busyMs - last.busyMs) / (now.totalMs - last.totalMs);
      last = now;
    }
    return utilisation;
  });
  gauge('nv_cpu_memory_total_bytes', 'CPU total memory (RAM), in bytes', totalmem);
  gauge('nv_cpu_memory_used_bytes', 'CPU used memory (RAM), in bytes', () => totalmem() - freemem());
}
