// CPU a request of intake, lane and dispatch together, without worker or gateway: `node apps/scheduler/bench/lane.bench.mjs`
// after a build. 64 requests arrive in a turn, share a batch, and complete in the next turn.
import { create } from '@bufbuild/protobuf';
import { systemClock } from '@paceline/clock';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import { StatisticsRegistry } from '@paceline/telemetry';
import { LaneIntake, Lanes } from '../dist/index.js';

const config = create(ModelConfigSchema, {
  name: 'm',
  maxBatchSize: 64,
  schedulingChoice: { case: 'dynamicBatching', value: { preferredBatchSize: [64] } },
});
const pending = [];
let listener;
const link = { setListener: (l) => (listener = l), execute: (batch) => pending.push(batch) };
let answered = 0;
const replies = { send: () => (answered += 1) };
const lanes = new Lanes({ clock: systemClock, link, replies, statistics: new StatisticsRegistry() });
link.setListener(lanes);
const intake = new LaneIntake(lanes, replies);
lanes.open({ model: 'm', version: '1', generation: 1, config, inputs: [], instances: ['g_0'] });

let number = 0;
let batches = 0;
const turn = () => new Promise((resolve) => setImmediate(resolve));
async function run(rounds) {
  for (let i = 0; i < rounds; i++) {
    for (let j = 0; j < 64; j++) {
      intake.onEnvelope({
        ref: { gateway: '0123456789abcdef', number: number++ },
        model: 'm',
        version: '1',
        clientId: '',
        rows: 1,
        priority: 0,
        timeoutUs: 0,
        shapeKey: '',
        inputs: [],
        outputs: ['y'],
      });
    }
    await turn();
    completeAll();
  }
}
function completeAll() {
  for (const batch of pending.splice(0)) {
    batches += 1;
    listener.onCompletion({
      batchId: batch.id,
      instance: batch.instance,
      outcome: 'ok',
      started: true,
      error: undefined,
      computeInputNs: 1e4,
      computeInferNs: 1e5,
      computeOutputNs: 1e4,
    });
  }
}
await run(3000);
batches = 0;
const cpu = process.cpuUsage();
const rounds = 10_000;
await run(rounds);
const { user, system } = process.cpuUsage(cpu);
console.log(
  `${((user + system) / rounds / 64).toFixed(2)} us of CPU a request, ${((rounds * 64) / batches).toFixed(1)} rows a batch, ${answered} refused`,
);
const drained = lanes.drainAll();
for (let i = 0; i < 10; i++) {
  await turn();
  completeAll();
}
await drained;
