/** Families of the server as a whole, each read from a number that somebody else keeps. */
import type { Registry } from 'prom-client';
import { ScrapedMetric } from './scraped-metric.js';

/** What a server tells of itself; a source that is undefined has no family. */
export interface ServerReadings {
  /** Open client connections by protocol. */
  readonly connections?: () => Readonly<Record<string, number>>;
  /** Request bodies that are being read or answered, in bytes. */
  readonly bufferedBytes?: () => number;
  /** Lines of the access log. */
  readonly accessLog?: { readonly writtenLines: number; readonly droppedLines: number };
}

export function registerServerMetrics(registry: Registry, { connections, bufferedBytes, accessLog }: ServerReadings): void {
  if (connections) {
    new ScrapedMetric(registry, {
      name: 'paceline_connections',
      type: 'gauge',
      help: 'Open client connections',
      read: () => Object.entries(connections()).map(([protocol, value]) => ({ labels: { protocol }, value })),
    });
  }
  if (bufferedBytes) {
    new ScrapedMetric(registry, {
      name: 'paceline_buffered_body_bytes',
      type: 'gauge',
      help: 'Large request bodies that are being read or answered, in bytes',
      read: () => [{ labels: {}, value: bufferedBytes() }],
    });
  }
  if (accessLog) {
    new ScrapedMetric(registry, {
      name: 'paceline_access_log_lines_total',
      type: 'counter',
      help: 'Lines handed to the access log',
      read: () => [{ labels: {}, value: accessLog.writtenLines }],
    });
    new ScrapedMetric(registry, {
      name: 'paceline_access_log_dropped_lines_total',
      type: 'counter',
      help: 'Lines that the access log had no room for, or could not write',
      read: () => [{ labels: {}, value: accessLog.droppedLines }],
    });
  }
}
