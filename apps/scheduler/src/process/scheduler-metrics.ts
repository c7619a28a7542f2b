/** What a scheduler shows of its partitions beside the series of models; read when somebody scrapes. */
import type { MetricFamily } from '@paceline/telemetry';
import type { ClusterScheduler } from './cluster-scheduler.js';
import type { PartitionReaderCounters } from '@paceline/streams';

export function schedulerFamilies(
  scheduler: () => ClusterScheduler,
  intake: () => PartitionReaderCounters,
  partitions: number,
): readonly MetricFamily[] {
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  const single = (value: number) => [{ labels: {}, value }];
  return [
    {
      name: 'paceline_partition_owned',
      type: 'gauge',
      help: 'Whether this scheduler owns the partition: 1 or 0',
      read: () => {
        const owned = new Set(scheduler().partitions.owned);
        return all.map((partition) => ({ labels: { partition: String(partition) }, value: Number(owned.has(partition)) }));
      },
    },
    {
      name: 'paceline_placement_owned',
      type: 'gauge',
      help: 'Whether this scheduler decides which models are loaded where: 1 or 0',
      read: () => single(Number(scheduler().placement.owns)),
    },
    {
      name: 'paceline_partition_lease_losses_total',
      type: 'counter',
      help: 'Leases of partitions that ended otherwise than by giving them up',
      read: () => single(scheduler().leases.losses),
    },
    {
      name: 'paceline_scheduler_unopened_requests',
      type: 'gauge',
      help: 'Requests that wait for a worker to announce their model',
      read: () => single(scheduler().partitions.unopened),
    },
    {
      name: 'paceline_scheduler_batches_with_workers',
      type: 'gauge',
      help: 'Batches that were sent and have not ended',
      read: () => single(scheduler().unfinished),
    },
    {
      name: 'paceline_intake_requests_total',
      type: 'counter',
      help: 'Requests read from the streams of partitions',
      read: () => single(intake().requests),
    },
    {
      name: 'paceline_intake_undecodable_entries_total',
      type: 'counter',
      help: 'Stream entries that could not be decoded and were set aside',
      read: () => single(intake().undecodable),
    },
  ];
}
