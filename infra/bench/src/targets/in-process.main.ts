/**
 * The limit: onnxruntime-node alone on the server's core, one thread, no spinning, batches already in memory and
 * different from run to run. Also gives the right answers that the server's are checked against.
 * Arguments: model name, ONNX file.
 */
import { createHistogram } from 'node:perf_hooks';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { benchModel, type BenchModel } from '../models/catalog.js';
import { inputBatch } from '../requests/inputs.js';
import type { LimitCommand, LimitReply, LimitSample } from './limit.js';

const [name = '', file = ''] = process.argv.slice(2);
const model = benchModel(name);
const session = await InferenceSession.create(file, {
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  graphOptimizationLevel: 'all',
  logSeverityLevel: 3,
  extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
});

function tensorOf(of: BenchModel, first: number, rows: number): Tensor {
  return new Tensor('float32', inputBatch(of, first, rows), [rows, ...of.inputShape]);
}

async function measure(rows: number, durationMs: number): Promise<LimitSample> {
  const batches = Array.from({ length: Math.max(1, Math.min(16, Math.floor(model.poolSize / rows))) }, (_, i) =>
    tensorOf(model, i * rows, rows),
  );
  const latency = createHistogram({ lowest: 1, highest: 60e9, figures: 3 });
  let runs = 0;
  const runOnce = async (): Promise<void> => {
    const x = batches[runs++ % batches.length];
    if (x !== undefined) await session.run({ [model.inputName]: x });
  };
  for (const warmUntil = performance.now() + durationMs / 5; performance.now() < warmUntil;) await runOnce();
  runs = 0;
  const cpuAtStart = process.cpuUsage();
  const startedAtMs = performance.now();
  let lastMs = startedAtMs;
  while (lastMs < startedAtMs + durationMs) {
    await runOnce();
    const nowMs = performance.now();
    latency.record(Math.max(1, Math.round((nowMs - lastMs) * 1e6)));
    lastMs = nowMs;
  }
  const cpu = process.cpuUsage(cpuAtStart);
  return {
    rows,
    rowsPerS: (runs * rows * 1000) / (lastMs - startedAtMs),
    runP50Ms: latency.percentile(50) / 1e6,
    cpuSecondsPer1000: (cpu.user + cpu.system) / 1000 / (runs * rows),
  };
}

async function answer(index: number): Promise<number[]> {
  const outputs = await session.run({ [model.inputName]: tensorOf(model, index, 1) });
  return Array.from(outputs[model.outputName]?.data as Float32Array);
}

async function serve(command: LimitCommand): Promise<LimitReply> {
  switch (command.type) {
    case 'measure':
      return { type: 'sample', sample: await measure(command.rows, command.durationMs) };
    case 'answer':
      return { type: 'answer', values: await answer(command.index) };
  }
}

process.on('message', (command: LimitCommand) => {
  serve(command).then(
    (reply) => process.send?.(reply),
    (error: unknown) => process.send?.({ type: 'error', text: String(error) } satisfies LimitReply),
  );
});
process.on('disconnect', () => process.exit(0));
