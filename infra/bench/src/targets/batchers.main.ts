/**
 * The decisions of a scheduler without anything around them: 1,000 lanes with priorities, timeouts and shape groups.
 * Bursts of 64 requests, 8 for each of 8 lanes, which are then decided for until nothing waits; each burst for other
 * lanes. Sends the rate of each second that it ran. Arguments: how many seconds.
 */
import { DynamicBatcher } from '@paceline/core';

const LANES = 1000;
const SHAPES = 8;
const LANES_PER_BURST = 8;
const BURST = 64;
const REQUESTS = 4096;
const IDLE = { idle: 1, stageable: 0 };

const policy: ConstructorParameters<typeof DynamicBatcher>[0] = {
  batching: true,
  maxRows: 64,
  preferredRows: [],
  maxQueueDelayUs: 0,
  objectiveUs: 0,
  preserveOrdering: false,
  levels: 3,
  defaultLevel: 2,
  defaultQueue: { timeoutAction: 'REJECT', defaultTimeoutUs: 10_000_000, allowTimeoutOverride: true, maxQueueSize: 100_000 },
  queueByLevel: new Map(),
  queueTimeoutUs: 60_000_000,
};

const batchers = Array.from({ length: LANES }, () => new DynamicBatcher(policy));
const requests = Array.from({ length: REQUESTS }, (_, i) => ({
  rows: 1,
  priority: i % 4,
  timeoutUs: i % 5 === 0 ? 5_000_000 + ((i * 7919) % 1000) * 1000 : 0,
  shapeKey: `shape-${i % SHAPES}`,
}));

let nowUs = 0;
let next = 0;
let sent = 0;

function burst(): number {
  let dispatched = 0;
  const lanes = Array.from({ length: LANES_PER_BURST }, () => batchers[next++ % LANES]);
  for (let i = 0; i < BURST; i++) {
    const request = requests[sent++ % REQUESTS];
    if (request !== undefined) lanes[i % LANES_PER_BURST]?.enqueue(request, nowUs++);
  }
  for (const lane of lanes) while (lane?.decide(nowUs, IDLE).kind === 'dispatch') dispatched++;
  return dispatched;
}

/** @returns requests a second */
function run(durationMs: number): number {
  const startedAtMs = performance.now();
  let count = 0;
  let batches = 0;
  while (performance.now() - startedAtMs < durationMs) {
    for (let i = 0; i < 100; i++) batches += burst();
    count += 100 * BURST;
  }
  const left = batchers.reduce((sum, batcher) => sum + batcher.size, 0);
  if (left > 0 || batches === 0) throw new Error(`${left} requests were left over by ${batches} batches`);
  return (count * 1000) / (performance.now() - startedAtMs);
}

run(1000);
const [seconds = 1] = process.argv.slice(2).map(Number);
process.send?.(Array.from({ length: seconds }, () => run(1000)));
process.disconnect();
