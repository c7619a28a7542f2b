/** What a cluster must look like when the load has gone: nothing under way, nothing kept, nothing that grew. */
import { Scrape } from '../support/scrape.js';
import { until } from '../support/until.js';
import { nameOf, type ClusterProcess } from './cluster-process.js';

/** Of every process; 0 when nothing is under way. */
const GAUGES = [
  'nv_inference_pending_request_count',
  'paceline_in_flight_requests',
  'paceline_in_flight_bytes',
  'paceline_queue_requests',
  'paceline_queue_rows',
  'paceline_buffered_body_bytes',
  'paceline_handover_waiting_requests',
  'paceline_scheduler_batches_with_workers',
  'paceline_scheduler_unopened_requests',
];
const QUIET_WITHIN_MS = 5000;
const PARTITIONS = 16;
const MOST_ENTRIES = 16;
const MOST_REDIS_BYTES = 64 * 1024 * 1024;
const MOST_PROCESS_BYTES = 700 * 1024 * 1024;

/** @returns what is not as it should be, one line each, as seen when it had time enough to be so */
export async function aftermath(cluster: ClusterProcess, models: readonly string[]): Promise<string[]> {
  let found: string[] = [];
  await until('nothing is left of the load', QUIET_WITHIN_MS, async () => {
    found = [...(await processesOf(cluster, models)), ...(await redisOf(cluster))];
    return found.length === 0;
  }).catch(() => undefined);
  return found;
}

async function processesOf(cluster: ClusterProcess, models: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const owned = { paceline_partition_owned: 0, paceline_placement_owned: 0 };
  for (const member of cluster.all) {
    const scrape = await Scrape.of(`127.0.0.1:${member.metrics}`);
    for (const gauge of GAUGES) {
      const value = scrape.sum(gauge);
      if (value !== 0) found.push(`${nameOf(member)}: ${gauge} is ${value}`);
    }
    if (member.role === 'gateway') {
      for (const model of models) {
        const balance = scrape.balance(model);
        if (balance !== 0) found.push(`${nameOf(member)}: ${balance} requests of ${model} came and are not accounted for`);
      }
    }
    const bytes = scrape.value('process_resident_memory_bytes');
    if (bytes > MOST_PROCESS_BYTES) found.push(`${nameOf(member)} takes ${(bytes / 2 ** 20).toFixed(0)} MiB`);
    for (const key of Object.keys(owned) as (keyof typeof owned)[]) owned[key] += scrape.sum(key);
  }
  if (owned.paceline_partition_owned !== PARTITIONS) found.push(`${owned.paceline_partition_owned} of ${PARTITIONS} partitions are owned`);
  if (owned.paceline_placement_owned !== 1) found.push(`${owned.paceline_placement_owned} schedulers own the placement`);
  return found;
}

async function redisOf(cluster: ClusterProcess): Promise<string[]> {
  const found: string[] = [];
  for (const key of (await cluster.redisCommand('KEYS', '*')).split('\n').filter((name) => name.endsWith(':in'))) {
    const entries = Number(await cluster.redisCommand('XLEN', key));
    if (entries > MOST_ENTRIES) found.push(`stream ${key} has ${entries} entries`);
  }
  const bytes = Number(/^used_memory:(\d+)/m.exec(await cluster.redisCommand('INFO', 'memory'))?.[1]);
  if (!(bytes < MOST_REDIS_BYTES)) found.push(`Redis takes ${bytes} bytes`);
  return found;
}
