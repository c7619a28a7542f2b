/**
 * What every RemoteWorker promises, as a test suite that each adapter runs against a {@link FakeWorker}: what one side
 * says arrives at the other unchanged and in order, and a cut connection is told to both.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { create } from '@bufbuild/protobuf';
import { ServingError, type Epoch } from '@paceline/protocol';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import type { Tensor } from '@paceline/tensor';
import type { ConnectWorker, FencedBatch, RemoteWorker } from '../cluster-worker.js';
import type { LoadSpec } from '../worker-link.js';
import { FakeWorker } from './fake-worker.js';
import { RemoteRecorder } from './remote-recorder.js';

export const CONTRACT_WORKER = '00000000000000f1';

export interface RemoteWorkerHarness {
  readonly address: string;
  /** A scheduler process with that id, 16 hex digits. */
  connectFrom(scheduler: string): ConnectWorker;
  /** Cuts every connection; they come back by themselves. */
  cut(): void;
  close(): Promise<void>;
}

const A = '00000000000000a1';
const B = '00000000000000b2';
const epoch = (number: number, owner = A): Epoch => ({ number, owner });

const tensor = (name: string, data: Uint8Array): Tensor => ({ name, datatype: 'UINT8', shape: [1, data.length], data });

const spec: LoadSpec = {
  model: 'modèle',
  version: '3',
  generation: 7,
  config: create(ModelConfigSchema, { name: 'modèle', maxBatchSize: 8, instanceGroup: [{ name: 'group', count: 2, kind: 2 }] }),
  modelPath: '/models/x/3/model.onnx',
  partition: 11,
  inputs: [{ name: 'IN', datatype: 'UINT8', shape: [-1, 4], optional: true, modelShape: [-1, 2, 2] }],
  outputs: [{ name: 'OUT', datatype: 'BYTES', shape: [], optional: false }],
  warmup: [{ name: 'zeros', count: 2, rows: 1, inputs: [tensor('IN', new Uint8Array(100_000).fill(3))] }],
};
const { warmup: _, ...announced } = spec;
const { model, version, generation } = spec;

function batch(id: number, at = epoch(1), partition = 5): FencedBatch {
  const ref = (number: number) => ({ gateway: '00000000000000cc', number });
  return {
    partition,
    epoch: at,
    batch: {
      id,
      model,
      version,
      generation,
      instance: 'group_0',
      rows: 3,
      members: [
        { ref: ref(2 ** 40 + id), rows: 1, inputs: [tensor('IN', Uint8Array.of(1, 2, 3, 4))], outputs: ['OUT'], queueNs: 12.5 },
        {
          ref: ref(id),
          rows: 2,
          inputs: [{ ...tensor('IN', new Uint8Array(0)), shape: [2, 4] }],
          outputs: [],
          queueNs: 0,
          attempt: 2,
          heldBytes: 8,
          traceParent: '00-1-2-01',
        },
      ],
    },
  };
}

/** @param open where `served` is reached as {@link CONTRACT_WORKER} */
export function describeRemoteWorker(name: string, open: (served: FakeWorker) => Promise<RemoteWorkerHarness>): void {
  describe(`${name} keeps the promises of RemoteWorker`, () => {
    let served: FakeWorker;
    let harness: RemoteWorkerHarness;
    let remotes: RemoteWorker[];

    beforeEach(async () => {
      served = new FakeWorker(CONTRACT_WORKER, [{ id: 'gpu:0', kind: 'gpu', memoryBytes: 80e9 }]);
      harness = await open(served);
      remotes = [];
    });

    afterEach(async () => {
      await Promise.all(remotes.map((remote) => remote.close()));
      await harness.close();
    });

    const join = async (scheduler = A): Promise<{ remote: RemoteWorker; told: RemoteRecorder }> => {
      const told = new RemoteRecorder();
      const remote = harness.connectFrom(scheduler)(CONTRACT_WORKER, harness.address, told);
      remotes.push(remote);
      await told.next('up');
      return { remote, told };
    };

    test('says who it is, what it has and which epochs it knows before anything else', async () => {
      const first = await join();
      expect(first.remote.connected).toBe(true);
      expect([...served.sessions].map((s) => s.scheduler)).toEqual([A]);
      await first.remote.load(spec, 'print');
      await first.remote.claim(9, epoch(4));
      const { told } = await join(B);
      const announcement = { spec: announced, fingerprint: 'print', instances: ['group_0', 'group_1'], ready: ['group_0', 'group_1'] };
      expect(told.events).toEqual([
        {
          kind: 'up',
          hello: {
            worker: CONTRACT_WORKER,
            devices: [{ id: 'gpu:0', kind: 'gpu', memoryBytes: 80e9 }],
            models: [{ ...announcement, state: 'loaded', memoryBytes: 0 }],
            draining: false,
            epochs: [{ partition: 9, epoch: epoch(4) }],
          },
        },
      ]);
    });

    test('a load arrives whole, its report comes back, and its life is told to every scheduler', async () => {
      const [{ remote }, other] = [await join(), await join(B)];
      served.onLoad = () =>
        Promise.resolve({
          instances: ['group_0', 'group_1'],
          devices: ['gpu:0', 'gpu:1'],
          warnings: ['a hint is not used'],
          durationMs: 1.5,
          warmup: { samples: 1, runs: 4, durationMs: 2.5 },
        });
      expect(await remote.load(spec, 'print')).toEqual({
        instances: ['group_0', 'group_1'],
        devices: ['gpu:0', 'gpu:1'],
        warnings: ['a hint is not used'],
        durationMs: 1.5,
        warmup: { samples: 1, runs: 4, durationMs: 2.5 },
      });
      expect(served.loads).toEqual([spec]);
      await remote.activate(model, version, generation);
      served.instance(model, version, generation, 'group_1', 'down');
      const retired = remote.retire(model, version, generation);
      await other.told.next('model', (e) => e.model.state === 'retiring');
      other.remote.release(model, version, generation);
      await retired;
      await other.told.next('gone');
      expect(other.told.events.slice(1).map((e) => (e.kind === 'model' ? e.model.state : e.kind))).toEqual([
        'loaded',
        'active',
        'instance',
        'retiring',
        'gone',
      ]);
      expect(other.told.of('model')[0]?.model).toMatchObject({ instances: ['group_0', 'group_1'], devices: ['gpu:0', 'gpu:1'] });
      expect(other.told.of('instance')[0]?.event).toEqual({
        model,
        version,
        generation,
        instance: 'group_1',
        state: 'down',
        reason: 'test',
      });
      expect(other.told.of('gone')[0]?.load).toBe('modèle/3/7');
    });

    test('a load that fails rejects with the error of the worker', async () => {
      const { remote } = await join();
      const error = new ServingError('INVALID_ARGUMENT', 'not a model: é', { reason: 'bad_model', retryAfterMs: 5, httpStatus: 413 });
      served.onLoad = () => Promise.reject(error);
      await expect(remote.load(spec, '')).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: 'not a model: é',
        reason: 'bad_model',
        retryAfterMs: 5,
        httpStatus: 413,
      });
      await expect(remote.activate('other', '1', 1)).rejects.toMatchObject({ code: 'NOT_FOUND', reason: 'unknown_load' });
      await remote.retire('other', '1', 1);
    });

    test('batches arrive unchanged and in order; so do what began and how it ended, at the scheduler that sent them', async () => {
      const [{ remote, told }, other] = [await join(), await join(B)];
      await remote.load(spec, '');
      const { promise: both, resolve } = Promise.withResolvers<void>();
      served.onBatch = () => served.batches.length === 2 && resolve();
      remote.execute(batch(1));
      remote.execute({ ...batch(2), batch: { ...batch(2).batch, quarantine: true } });
      await both;
      const inputs = served.batches.map((b) => b.batch.members.map((m) => m.inputs.map((i) => [...i.data])));
      expect(inputs).toEqual([[[[1, 2, 3, 4]], [[]]], [[[1, 2, 3, 4]], [[]]]]); // prettier-ignore
      const plain = (sent: FencedBatch): unknown =>
        JSON.parse(JSON.stringify(sent, (key, value: unknown) => (key === 'data' ? undefined : value)));
      expect(served.batches.map(plain)).toEqual([batch(1), { ...batch(2), batch: { ...batch(2).batch, quarantine: true } }].map(plain));
      served.start();
      served.end('ok');
      served.end('lost', new ServingError('UNAVAILABLE', 'it died', { reason: 'instance_lost' }));
      expect(await told.completion(1)).toMatchObject({ outcome: 'ok', started: true, instance: 'group_0', computeInferNs: 1000 });
      expect(await told.completion(2)).toMatchObject({ outcome: 'lost', error: { message: 'it died', reason: 'instance_lost' } });
      expect(told.events.flatMap((e) => (e.kind === 'started' || e.kind === 'completion' ? [e.kind] : []))).toEqual([
        'started',
        'completion',
        'completion',
      ]);
      expect(other.told.of('completion')).toEqual([]);
    });

    test('a claim tells what runs, or the epoch that is in its way; an older epoch executes nothing', async () => {
      const [{ remote, told }, other] = [await join(), await join(B)];
      await remote.load(spec, '');
      remote.execute(batch(1, epoch(3)));
      const { members } = batch(1).batch;
      expect(await other.remote.claim(5, epoch(3, B))).toEqual({ ok: false, highest: epoch(3) });
      expect(await other.remote.claim(5, epoch(4, B))).toEqual({
        ok: true,
        running: members.map(({ ref, attempt = 1 }) => ({ ref, attempt })),
      });
      expect(await other.remote.claim(6, epoch(1, B))).toEqual({ ok: true, running: [] });
      remote.execute(batch(2, epoch(3)));
      expect(await told.completion(2)).toMatchObject({ outcome: 'refused', started: false, error: { reason: 'stale_epoch' } });
    });

    test('a worker that drains says so', async () => {
      const { told } = await join();
      served.drain();
      await told.next('draining');
      expect((await join(B)).told.of('up')[0]?.hello.draining).toBe(true);
    });

    test('a cut is told to both sides, answers every question, and heals by itself', async () => {
      const { remote, told } = await join();
      const asked = Promise.withResolvers<void>();
      served.onLoad = () => {
        asked.resolve();
        return new Promise(() => undefined);
      };
      const load = remote.load(spec, '');
      await asked.promise;
      const failed = expect(load).rejects.toMatchObject({ code: 'UNAVAILABLE', reason: 'worker_lost' });
      harness.cut();
      await failed;
      await told.next('down');
      await told.next(
        'up',
        () => true,
        told.events.findIndex((e) => e.kind === 'down'),
      );
      expect(remote.connected).toBe(true);
      expect(served.sessions.size).toBe(1);
      expect(await remote.claim(1, epoch(1))).toEqual({ ok: true, running: [] });
    });

    test('closing ends it for good', async () => {
      const { remote } = await join();
      const gone = Promise.withResolvers<void>();
      const disconnect = served.disconnect.bind(served);
      served.disconnect = (session) => {
        disconnect(session);
        gone.resolve();
      };
      await remote.close();
      await gone.promise;
      expect(remote.connected).toBe(false);
      await expect(remote.claim(1, epoch(1))).rejects.toMatchObject({ reason: 'worker_lost' });
      await remote.retire(model, version, generation);
    });
  });
}
