// Cost of the batcher alone: `node packages/core/bench/batcher.bench.mjs` after a build. Prints enqueue+decide per second
// for a queue that is empty in between, and for one that always holds 10,000 requests; levels, timeouts and shapes are on.
import { DynamicBatcher } from '../dist/index.js';

const queue = { timeoutAction: 'REJECT', defaultTimeoutUs: 10_000_000, allowTimeoutOverride: true, maxQueueSize: 100_000 };
const policy = {
  batching: true,
  maxRows: 64,
  preferredRows: [],
  maxQueueDelayUs: 0,
  objectiveUs: 0,
  preserveOrdering: false,
  levels: 3,
  defaultLevel: 2,
  defaultQueue: queue,
  queueByLevel: new Map(),
  queueTimeoutUs: 60_000_000,
};
const BUSY = { idle: 0, stageable: 0 };
const IDLE = { idle: 1, stageable: 0 };

function run(name, { standing, shapes, delayUs, objectiveUs = 0, rounds }) {
  const batcher = new DynamicBatcher({ ...policy, maxQueueDelayUs: delayUs, objectiveUs });
  const keys = Array.from({ length: shapes }, (_, i) => `shape-${i}`);
  const requests = Array.from({ length: 4096 }, (_, i) => ({
    rows: 1,
    priority: i % 4,
    timeoutUs: i % 5 ? 0 : 5_000_000 + ((i * 7919) % 1000) * 1000,
    shapeKey: keys[i % shapes],
  }));
  if (objectiveUs > 0)
    for (const key of keys)
      for (const rows of [1, 2, 4, 8, 16, 32, 64])
        for (let i = 0; i < 32; i++) batcher.completed(key, rows, 5 + rows / 10 + (i % 3), rows, 0);
  let now = 0;
  for (let i = 0; i < standing; i++) batcher.enqueue(requests[i % 4096], now++);
  const drain = () => {
    while (batcher.size > standing && batcher.decide(now, IDLE).kind === 'dispatch');
  };
  const work = (n) => {
    for (let i = 0; i < n; i++) {
      batcher.enqueue(requests[i % 4096], now++);
      if (i % 64 === 63) drain();
      else batcher.decide(now, BUSY);
    }
  };
  work(200_000);
  const started = process.hrtime.bigint();
  work(rounds);
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  console.log(
    `${name.padEnd(44)} ${(rounds / seconds / 1e6).toFixed(2)} M enqueue+decide/s  ${((seconds / rounds) * 1e9).toFixed(0)} ns each  queue ${batcher.size}`,
  );
}

run('one shape, drained every 64', { standing: 0, shapes: 1, delayUs: 0, rounds: 2_000_000 });
run('8 shapes, drained every 64', { standing: 0, shapes: 8, delayUs: 0, rounds: 2_000_000 });
run('one shape, 10,000 waiting', { standing: 10_000, shapes: 1, delayUs: 0, rounds: 1_000_000 });
run('8 shapes, 10,000 waiting', { standing: 10_000, shapes: 8, delayUs: 0, rounds: 1_000_000 });
run('8 shapes, 10,000 waiting, queue delay', { standing: 10_000, shapes: 8, delayUs: 1000, rounds: 1_000_000 });
run('one shape, drained every 64, objective', { standing: 0, shapes: 1, delayUs: 0, objectiveUs: 1e6, rounds: 2_000_000 });
run('8 shapes, 10,000 waiting, objective', { standing: 10_000, shapes: 8, delayUs: 0, objectiveUs: 1e6, rounds: 1_000_000 });

/** Bursts of 64 requests, 8 for each of 8 lanes, which are then decided for; each burst for other lanes. */
function manyLanes(lanes, rounds) {
  const batchers = Array.from({ length: lanes }, () => new DynamicBatcher(policy));
  const requests = Array.from({ length: 4096 }, (_, i) => ({
    rows: 1,
    priority: i % 4,
    timeoutUs: i % 5 ? 0 : 5_000_000 + ((i * 7919) % 1000) * 1000,
    shapeKey: `shape-${i % 8}`,
  }));
  let now = 0;
  let next = 0;
  const work = (n) => {
    for (let i = 0; i < n; i += 64) {
      for (let j = 0; j < 64; j++) batchers[(next + (j & 7)) % lanes].enqueue(requests[(i + j) % 4096], now++);
      for (let j = 0; j < 8; j++) while (batchers[(next + j) % lanes].decide(now, IDLE).kind === 'dispatch');
      next = (next + 8) % lanes;
    }
  };
  work(200_000);
  const started = process.hrtime.bigint();
  work(rounds);
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  const rate = `${(rounds / seconds / 1e6).toFixed(2)} M enqueue+decide/s  ${((seconds / rounds) * 1e9).toFixed(0)} ns each`;
  console.log(`${`${lanes} lanes, 8 shapes, bursts of 8 each`.padEnd(44)} ${rate}`);
}
manyLanes(1000, 1_000_000);
