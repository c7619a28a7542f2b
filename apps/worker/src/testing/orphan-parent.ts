/**
 * A worker in a process of its own, to be killed by a test: loads the slow model at argv[2], begins a run without end
 * when argv[3] is `running`, and prints the process ids of its hosts as one JSON line.
 */
import { createLogger, SILENT } from '@paceline/telemetry';
import { createLocalWorker } from '../local-worker.js';
import { configOf, fp32, int64 } from './samples.js';

const [modelPath = '', state = ''] = process.argv.slice(2);
const worker = createLocalWorker({ replies: { send: () => undefined }, logger: createLogger(SILENT) });
const input = (name: string, datatype: 'FP32' | 'INT64') => ({ name, datatype, shape: [-1, 1], optional: false });
await worker.load({
  model: 'slow',
  version: '1',
  generation: 1,
  config: configOf('slow'),
  modelPath,
  inputs: [input('INPUT0', 'FP32'), input('ITERS', 'INT64')],
  outputs: [input('OUTPUT0', 'FP32')],
});
if (state === 'running') {
  const inputs = [fp32('INPUT0', [1, 1], [1]), int64('ITERS', [1, 1], [1_000_000_000n])];
  const member = { ref: { gateway: '00000000000000aa', number: 1 }, rows: 1, inputs, outputs: ['OUTPUT0'], queueNs: 0 };
  worker.execute({ id: 1, model: 'slow', version: '1', generation: 1, instance: 'slow_0_0', rows: 1, members: [member] });
}
console.log(JSON.stringify(worker.hostPids()));
