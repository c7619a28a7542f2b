/** What a gateway of a cluster shows to a scrape beside what every gateway shows: whom it is joined with. */
import type { RedisConnection } from '@paceline/redis';
import type { GatewayLinks, RedisRequestQueue } from '@paceline/streams';
import type { MetricFamily } from '@paceline/telemetry';
import type { PartitionOwners } from './partition-owners.js';

export interface ClusterMetricSources {
  readonly links: Pick<GatewayLinks, 'schedulers' | 'workers'>;
  readonly owners: Pick<PartitionOwners, 'count'>;
  readonly redis: Pick<RedisConnection, 'up'>;
  readonly queue: Pick<RedisRequestQueue, 'counters' | 'waiting'>;
}

export function clusterMetrics({ links, owners, redis, queue }: ClusterMetricSources): readonly MetricFamily[] {
  return [
    {
      name: 'paceline_links',
      type: 'gauge',
      help: 'Processes of the cluster that are connected to this one',
      read: () => [
        { labels: { role: 'scheduler' }, value: links.schedulers.length },
        { labels: { role: 'worker' }, value: links.workers.length },
      ],
    },
    {
      name: 'paceline_owned_partitions',
      type: 'gauge',
      help: 'Partitions whose scheduler is connected to this gateway',
      read: () => [{ labels: {}, value: owners.count }],
    },
    {
      name: 'paceline_redis_up',
      type: 'gauge',
      help: 'Whether there is a connection to Redis',
      read: () => [{ labels: {}, value: redis.up ? 1 : 0 }],
    },
    counter('paceline_handover_entries_total', 'Entries of packed requests that Redis took', () => queue.counters.entries),
    counter('paceline_handover_requests_total', 'Requests in those entries', () => queue.counters.requests),
    counter('paceline_handover_resent_total', 'Requests that were handed over once more', () => queue.counters.resent),
    counter('paceline_handover_failures_total', 'Entries that Redis did not take', () => queue.counters.failures),
    {
      name: 'paceline_handover_waiting_requests',
      type: 'gauge',
      help: 'Unanswered requests that Redis has not taken yet',
      read: () => [{ labels: {}, value: queue.waiting }],
    },
  ];
}

function counter(name: string, help: string, read: () => number): MetricFamily {
  return { name, help, type: 'counter', read: () => [{ labels: {}, value: read() }] };
}
