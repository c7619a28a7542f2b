// CPU a request of a whole scheduler process, fed with packed entries through Redis, with a worker that ends every batch at
// once: `node apps/scheduler/bench/process.bench.mjs [seconds]` after a build. Gateway and worker are played by this process.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { partitionOf } from '@paceline/core';
import { startRedis } from '@paceline/testkit';
// The index of that folder needs a test framework.
import { FakeWorker } from '../../../packages/worker-rpc/dist/testing/fake-worker.js';
import { clusterOptions, GatewayDouble, PARTITIONS, until, WorkerDouble } from '../dist/process/testing/neighbours.js';

const seconds = Number(process.argv[2] ?? 5);
const OUTSTANDING = 1024;
const BURST = 64;
const repository = mkdtempSync(join(tmpdir(), 'paceline-'));
mkdirSync(join(repository, 'sim', '1'), { recursive: true });
const tensor = 'data_type: TYPE_FP32 dims: 150';
writeFileSync(
  join(repository, 'sim', 'config.pbtxt'),
  `backend: "simulated" max_batch_size: 64 input { name: "x" ${tensor} } output { name: "y" ${tensor} } dynamic_batching { }`,
);
const redis = await startRedis();
const options = clusterOptions(redis.url, repository);
const gateway = await GatewayDouble.start(options, () => partitionOf('sim', '1', PARTITIONS));
const worker = await WorkerDouble.start(options, (id) => new FakeWorker(id));
let ended = 0;
let batches = 0;
worker.fake.onBatch = ({ batch }) => {
  batches += 1;
  ended += batch.members.length;
  for (const { ref } of batch.members) gateway.queue.forget(ref);
  worker.fake.end();
  worker.fake.batches.length = 0;
};
const flags = [
  `--redis-url=${redis.url}`,
  `--model-repository=${repository}`,
  `--partitions=${PARTITIONS}`,
  '--metrics-port=0',
  '--log-info=false',
];
const scheduler = spawn(process.execPath, [join(import.meta.dirname, '../dist/main.js'), ...flags], {
  stdio: 'inherit',
  env: { ...process.env, PACELINE_CLUSTER_SECRET: 'a secret of the cluster' },
});
await until('the model is routed and owned', () => gateway.routed.includes('sim') && gateway.owners.size === PARTITIONS);

/** Of the scheduler, microseconds; the kernel counts in hundredths of a second. */
const cpuUs = () => {
  const fields = readFileSync(`/proc/${scheduler.pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
};
const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 150], data: new Uint8Array(600) }];
let sent = 0;
const run = async (forMs) => {
  for (const endMs = performance.now() + forMs; performance.now() < endMs;) {
    for (let i = 0; i < BURST && sent - ended < OUTSTANDING; i++) {
      const ref = { gateway: gateway.id, number: ++sent };
      gateway.queue.enqueue({
        ref,
        model: 'sim',
        version: '1',
        clientId: '',
        rows: 1,
        priority: 0,
        timeoutUs: 0,
        shapeKey: '',
        inputs,
        outputs: ['y'],
      });
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
};
await run(1500);
const before = { cpu: cpuUs(), ended, batches, ms: performance.now() };
await run(seconds * 1000);
const requests = ended - before.ended;
const us = (cpuUs() - before.cpu) / requests;
const rate = (requests / (performance.now() - before.ms)) * 1000;
console.log(
  `${us.toFixed(2)} us of CPU a request: ${Math.round(1e6 / us)} requests/s on one core; ${Math.round(rate)}/s went through, ${(requests / (batches - before.batches)).toFixed(1)} rows a batch`,
);
scheduler.kill();
await gateway.stop();
await worker.stop();
await redis.stop();
rmSync(repository, { recursive: true });
process.exit(0);
