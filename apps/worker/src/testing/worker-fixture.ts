/** A worker with real hosts over models in a temporary folder, for this package's tests. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServingError, type TensorSpec } from '@paceline/protocol';
import { createLogger, SILENT } from '@paceline/telemetry';
import type { DataType, Tensor } from '@paceline/tensor';
import type { Batch, BatchCompletion, BatchMember, LoadSpec } from '@paceline/worker-rpc';
import { RecordingListener, RecordingReplies } from '@paceline/worker-rpc/testing';
import { createLocalWorker, type LocalWorker } from '../local-worker.js';
import type { LocalWorkerOptions } from '../local-worker.options.js';
import { configOf } from './samples.js';

export interface ModelOptions {
  readonly onnx: Uint8Array;
  /** Names with data type and shape on the wire (with the batch dimension). */
  readonly inputs: readonly (readonly [name: string, datatype: DataType, shape: readonly number[]])[];
  readonly outputs: readonly (readonly [name: string, datatype: DataType, shape: readonly number[]])[];
  readonly maxBatchSize?: number;
  readonly instances?: number;
  readonly parameters?: Readonly<Record<string, string>>;
}

const toSpec = ([name, datatype, shape]: ModelOptions['inputs'][number]): TensorSpec => ({ name, datatype, shape, optional: false });

export class WorkerFixture {
  readonly replies = new RecordingReplies();
  readonly listener = new RecordingListener();
  readonly worker: LocalWorker;
  readonly folder = mkdtempSync(join(tmpdir(), 'paceline-worker-'));
  #nextBatch = 1;
  #nextRequest = 1;

  constructor(options: Partial<LocalWorkerOptions> = {}) {
    this.worker = createLocalWorker({ replies: this.replies, logger: createLogger(SILENT), ...options });
    this.worker.setListener(this.listener);
  }

  /** Writes the model file and says how to load it. */
  spec(model: string, options: ModelOptions): LoadSpec {
    const folder = join(this.folder, model, '1');
    mkdirSync(folder, { recursive: true });
    const modelPath = join(folder, 'model.onnx');
    writeFileSync(modelPath, options.onnx);
    return {
      model,
      version: '1',
      generation: 1,
      config: configOf(model, options),
      modelPath,
      inputs: options.inputs.map(toSpec),
      outputs: options.outputs.map(toSpec),
    };
  }

  async load(model: string, options: ModelOptions): Promise<LoadSpec> {
    const spec = this.spec(model, options);
    await this.worker.load(spec);
    return spec;
  }

  member(inputs: readonly Tensor[], outputs: readonly string[], rows = 1): BatchMember {
    return { ref: { gateway: '00000000000000aa', number: this.#nextRequest++ }, rows, inputs, outputs, queueNs: 0 };
  }

  batch(spec: LoadSpec, members: readonly BatchMember[], instance = `${spec.model}_0_0`): Batch {
    const rows = members.reduce((sum, m) => sum + m.rows, 0);
    return { id: this.#nextBatch++, model: spec.model, version: spec.version, generation: spec.generation, instance, rows, members };
  }

  /** Runs one batch to its completion. */
  run(spec: LoadSpec, members: readonly BatchMember[], instance?: string): Promise<BatchCompletion> {
    const batch = this.batch(spec, members, instance);
    this.worker.execute(batch);
    return this.listener.completion(batch.id);
  }

  /** Runs one member alone and returns its outputs. @throws the completion's error */
  async infer(spec: LoadSpec, inputs: readonly Tensor[], outputs: readonly string[], rows = 1): Promise<readonly Tensor[]> {
    const member = this.member(inputs, outputs, rows);
    const completion = await this.run(spec, [member]);
    if (completion.outcome !== 'ok') throw completion.error ?? new ServingError('INTERNAL', completion.outcome);
    return this.replies.only(member.ref.number).outputs;
  }

  async close(): Promise<void> {
    await this.worker.close(5000);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
