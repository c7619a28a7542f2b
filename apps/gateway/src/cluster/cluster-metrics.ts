/** What a gateway of a cluster shows to a scrape beside what every gateway shows: whom it is joined with. */
import type { RedisConnection } from '@paceline/redis';
import type { GatewayLinks } from '@paceline/streams';
import type { MetricFamily } from '@paceline/telemetry';
import type { PartitionOwners } from './partition-owners.js';

export interface ClusterMetricSources {
  readonly links: Pick<GatewayLinks, 'schedulers' | 'workers'>;
  readonly owners: Pick<PartitionOwners, 'count'>;
  readonly redis: Pick<RedisConnection, 'up'>;
}

export function clusterMetrics({ links, owners, redis }: ClusterMetricSources): readonly MetricFamily[] {
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
  ];
}
