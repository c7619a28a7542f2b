/**
 * What every WorkerLink promises, as a test suite that each adapter runs against real instances: each batch ends in one
 * completion, each member of an `ok` batch was answered before it, and nobody is answered by any other outcome.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ServingError } from '@paceline/protocol';
import type { Tensor } from '@paceline/tensor';
import type { Batch, BatchMember, LoadSpec, WorkerLink } from '../worker-link.js';
import { RecordingListener, RecordingReplies } from './recorders.js';

/** Load specs of three models; `generation` is set by the suite. */
export interface ContractModels {
  /** FP32 [-1,2] INPUT0, INPUT1 -> OUTPUT0 = sum, OUTPUT1 = difference; batches up to 8; one instance. */
  readonly addSub: LoadSpec;
  /** INT64 [-1,1] INPUT0 -> FP32 [-1,1] OUTPUT0 = 10 x (INPUT0 + 1) for 0..3; any other index fails the run. */
  readonly gather: LoadSpec;
  /** A file that is no model. */
  readonly broken: LoadSpec;
}

export interface WorkerLinkHarness {
  readonly link: WorkerLink;
  readonly models: ContractModels;
  close(): Promise<void>;
}

const floats = (name: string, values: readonly number[], columns: number): Tensor => ({
  name,
  datatype: 'FP32',
  shape: [values.length / columns, columns],
  data: new Uint8Array(Float32Array.from(values).buffer),
});

const indexes = (values: readonly bigint[]): Tensor => ({
  name: 'INPUT0',
  datatype: 'INT64',
  shape: [values.length, 1],
  data: new Uint8Array(BigInt64Array.from(values).buffer),
});

const read = (tensor: Tensor | undefined): number[] => Array.from(new Float32Array(Uint8Array.from(tensor?.data ?? []).buffer));

function batchOf(spec: LoadSpec, id: number, instance: string, members: readonly Omit<BatchMember, 'queueNs'>[]): Batch {
  return {
    id,
    model: spec.model,
    version: spec.version,
    generation: spec.generation,
    instance,
    rows: members.reduce((rows, m) => rows + m.rows, 0),
    members: members.map((m) => ({ ...m, queueNs: 7 })),
  };
}

const ref = (number: number) => ({ gateway: '00000000000000aa', number });

/** @param open a link whose replies go to the recorder that is passed in */
export function describeWorkerLink(name: string, open: (replies: RecordingReplies) => Promise<WorkerLinkHarness>): void {
  describe(`${name} keeps the promises of WorkerLink`, () => {
    let harness: WorkerLinkHarness;
    let listener: RecordingListener;
    let replies: RecordingReplies;

    beforeEach(async () => {
      replies = new RecordingReplies();
      harness = await open(replies);
      listener = new RecordingListener();
      harness.link.setListener(listener);
    });

    afterEach(() => harness.close());

    const load = async (spec: LoadSpec): Promise<string> => {
      const report = await harness.link.load(spec);
      expect(report.instances.length).toBeGreaterThan(0);
      return report.instances[0]!;
    };

    test('each member gets its own rows and only the outputs it asked for, before the completion', async () => {
      const spec = harness.models.addSub;
      const instance = await load(spec);
      const answeredFirst: boolean[] = [];
      const record = listener.onCompletion.bind(listener);
      listener.onCompletion = (completion) => {
        answeredFirst.push(replies.frames.size === 2);
        record(completion);
      };
      harness.link.execute(
        batchOf(spec, 1, instance, [
          { ref: ref(1), rows: 1, inputs: [floats('INPUT0', [5, 7], 2), floats('INPUT1', [2, 3], 2)], outputs: ['OUTPUT1'] },
          {
            ref: ref(2),
            rows: 2,
            inputs: [floats('INPUT0', [1, 2, 3, 4], 2), floats('INPUT1', [1, 1, 1, 1], 2)],
            outputs: ['OUTPUT1', 'OUTPUT0'],
          },
        ]),
      );
      const completion = await listener.completion(1);
      expect(completion).toMatchObject({ outcome: 'ok', started: true, error: undefined, instance });
      expect(answeredFirst).toEqual([true]);
      const first = replies.only(1);
      expect(first.outputs.map((o) => [o.name, o.shape, read(o)])).toEqual([['OUTPUT1', [1, 2], [3, 4]]]);
      const second = replies.only(2);
      expect(second.outputs.map((o) => [o.name, o.shape, read(o)])).toEqual([
        ['OUTPUT1', [2, 2], [0, 1, 2, 3]],
        ['OUTPUT0', [2, 2], [2, 3, 4, 5]],
      ]);
      expect(second).toMatchObject({
        final: true,
        index: 0,
        timings: { queueNs: 7, batchRows: 3, computeInferNs: completion.computeInferNs },
      });
      expect(completion.computeInferNs).toBeGreaterThan(0);
    });

    test('two batches may be with an instance; they end in order', async () => {
      const spec = harness.models.addSub;
      const instance = await load(spec);
      for (const id of [1, 2]) {
        const inputs = [floats('INPUT0', [id, id], 2), floats('INPUT1', [1, 1], 2)];
        harness.link.execute(batchOf(spec, id, instance, [{ ref: ref(id), rows: 1, inputs, outputs: ['OUTPUT0'] }]));
      }
      await listener.completion(2);
      expect(listener.completions.map((c) => [c.batchId, c.outcome])).toEqual([
        [1, 'ok'],
        [2, 'ok'],
      ]);
      expect(read(replies.only(2).outputs[0])).toEqual([3, 3]);
    });

    test('a run that fails answers nobody, and the instance goes on', async () => {
      const spec = harness.models.gather;
      const instance = await load(spec);
      const member = (number: number, index: bigint) => ({ ref: ref(number), rows: 1, inputs: [indexes([index])], outputs: ['OUTPUT0'] });
      harness.link.execute(batchOf(spec, 1, instance, [member(1, 2n), member(2, 99n)]));
      const completion = await listener.completion(1);
      expect(completion).toMatchObject({ outcome: 'failed', started: true });
      expect(completion.error?.message).toContain('99');
      expect(replies.frames.size).toBe(0);
      harness.link.execute(batchOf(spec, 2, instance, [member(3, 2n)]));
      expect((await listener.completion(2)).outcome).toBe('ok');
      expect(read(replies.only(3).outputs[0])).toEqual([30]);
    });

    test('an instance that the worker does not have is refused, nothing runs', async () => {
      const spec = harness.models.gather;
      const instance = await load(spec);
      const members = [{ ref: ref(1), rows: 1, inputs: [indexes([0n])], outputs: ['OUTPUT0'] }];
      harness.link.execute(batchOf({ ...spec, generation: spec.generation + 1 }, 1, instance, members));
      harness.link.execute(batchOf(spec, 2, `${instance}x`, members));
      expect(listener.completions).toEqual([]);
      expect(await listener.completion(1)).toMatchObject({ outcome: 'refused', started: false });
      expect(await listener.completion(2)).toMatchObject({ outcome: 'refused', started: false });
      expect(replies.frames.size).toBe(0);
    });

    test('batches in quarantine are answered in order like any other, and tell nobody of an instance', async () => {
      const spec = harness.models.gather;
      const instance = await load(spec);
      const member = (number: number, index: bigint) => [{ ref: ref(number), rows: 1, inputs: [indexes([index])], outputs: ['OUTPUT0'] }];
      for (const [id, index] of [
        [1, 1n],
        [2, 99n],
        [3, 3n],
      ] as const) {
        harness.link.execute({ ...batchOf(spec, id, 'apart', member(id, index)), quarantine: true });
      }
      harness.link.execute(batchOf(spec, 4, instance, member(4, 0n)));
      await Promise.all([3, 4].map((id) => listener.completion(id)));
      const apart = listener.completions.filter((c) => c.instance === 'apart').map((c) => [c.batchId, c.outcome]);
      expect(apart).toEqual([[1, 'ok'], [2, 'failed'], [3, 'ok']]); // prettier-ignore
      expect([1, 3, 4].map((number) => read(replies.only(number).outputs[0]))).toEqual([[20], [40], [10]]);
      expect(listener.events).toEqual([]);
      await harness.link.unload(spec.model, spec.version, spec.generation);
      harness.link.execute({ ...batchOf(spec, 5, 'apart', member(5, 1n)), quarantine: true });
      expect((await listener.completion(5)).outcome).toBe('refused');
    });

    test('after unload the generation is gone; another one serves', async () => {
      const spec = harness.models.gather;
      const instance = await load(spec);
      await harness.link.unload(spec.model, spec.version, spec.generation);
      const members = [{ ref: ref(1), rows: 1, inputs: [indexes([0n])], outputs: ['OUTPUT0'] }];
      harness.link.execute(batchOf(spec, 1, instance, members));
      expect((await listener.completion(1)).outcome).toBe('refused');
      const next = { ...spec, generation: spec.generation + 1 };
      harness.link.execute(batchOf(next, 2, await load(next), members));
      expect((await listener.completion(2)).outcome).toBe('ok');
      await harness.link.unload(spec.model, spec.version, 12345);
    });

    test('a model that does not load rejects with a ServingError and leaves nothing', async () => {
      const spec = harness.models.broken;
      await expect(harness.link.load(spec)).rejects.toThrow(ServingError);
      harness.link.execute(batchOf(spec, 1, `${spec.model}_0`, [{ ref: ref(1), rows: 1, inputs: [indexes([0n])], outputs: ['OUTPUT0'] }]));
      expect((await listener.completion(1)).outcome).toBe('refused');
      expect(listener.events).toEqual([]);
    });
  });
}
