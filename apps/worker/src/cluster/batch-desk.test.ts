// What becomes of batches: staging, pulls, fencing, and who is told when the scheduler that sent them is gone.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ServingError, type Epoch } from '@paceline/protocol';
import type { Tensor } from '@paceline/tensor';
import type { BatchMember, FencedBatch, RemoteWorker } from '@paceline/worker-rpc';
import type { RemoteRecorder } from '@paceline/worker-rpc/testing';
import { ClusterRig, settled, specOf, WORKER } from '../testing/cluster-rig.js';

const A = '00000000000000a1';
const B = '00000000000000b2';
const epoch = (number: number, owner = A): Epoch => ({ number, owner });
const ref = (number: number) => ({ gateway: '00000000000000cc', number });
const tensor = (bytes: number): Tensor => ({ name: 'IN', datatype: 'UINT8', shape: [1, 4], data: new Uint8Array(bytes) });
const member = (number: number, extra: Partial<BatchMember> = {}): BatchMember => ({
  ref: ref(number),
  rows: 1,
  inputs: [tensor(4)],
  outputs: ['OUT'],
  queueNs: 0,
  ...extra,
});
const held = (number: number): BatchMember => member(number, { inputs: [tensor(0)], heldBytes: 4 });

function fenced(id: number, members: readonly BatchMember[], at = epoch(1), more: Partial<FencedBatch['batch']> = {}): FencedBatch {
  const batch = { id, model: 'm', version: '1', generation: 1, instance: 'm_0_0', rows: members.length, members, ...more };
  return { partition: 5, epoch: at, batch };
}

describe('batches at a worker of a cluster', () => {
  let rig: ClusterRig;
  let remote: RemoteWorker;
  let told: RemoteRecorder;

  beforeEach(async () => {
    rig = new ClusterRig();
    ({ remote, told } = await rig.join(A));
    await remote.load(specOf('m'), 'f');
    await remote.activate('m', '1', 1);
  });

  const send = async (...batches: FencedBatch[]): Promise<void> => {
    for (const batch of batches) remote.execute(batch);
    await settled();
  };
  const running = (): number[][] => rig.local.executed.map((batch) => batch.members.map((m) => m.ref.number));
  const ended = (): [number, string, string | undefined][] =>
    told.of('completion').map(({ completion }) => [completion.batchId, completion.outcome, completion.error?.reason]);

  test('one runs, one is staged, others wait; each is told to begin when the one before has ended', async () => {
    await send(
      fenced(71, [member(1)]),
      fenced(72, [member(2)]),
      fenced(73, [member(3)]),
      fenced(74, [member(4)], epoch(1), { instance: 'm_0_1' }),
    );
    expect(running()).toEqual([[1], [2], [4]]);
    expect(told.of('started').map((e) => e.batchId)).toEqual([71, 74]);
    rig.local.end();
    await settled();
    expect(running()).toEqual([[2], [4], [3]]);
    expect(told.of('started').map((e) => e.batchId)).toEqual([71, 74, 72]);
    expect(ended()).toEqual([[71, 'ok', undefined]]);
    expect(rig.cluster.unfinished).toBe(3);
  });

  test('batches in quarantine are not held back', async () => {
    await send(...[1, 2, 3].map((id) => fenced(id, [member(id)], epoch(1), { quarantine: true })));
    expect(running()).toEqual([[1], [2], [3]]);
    expect(rig.local.executed.every((b) => b.quarantine)).toBe(true);
  });

  test('held inputs are pulled while the batch before runs, and nothing is given before they are there', async () => {
    await send(fenced(1, [member(1)]), fenced(2, [held(2), member(3)]));
    expect(running()).toEqual([[1]]);
    rig.links.pulls.get(2)!.resolve([tensor(4)]);
    await settled();
    expect(running()).toEqual([[1], [2, 3]]);
    expect(rig.local.executed[1]!.members[0]!.inputs[0]!.data.length).toBe(4);
    expect(rig.local.executed[1]!.members[0]).not.toHaveProperty('heldBytes');
  });

  test('a pull that fails answers its own request; the rest of the batch runs without it', async () => {
    await send(fenced(1, [held(1), member(2), held(3), held(4)], epoch(1), { rows: 4 }));
    rig.links.pulls.get(1)!.reject(new ServingError('DEADLINE_EXCEEDED', 'too slow', { reason: 'pull_timeout' }));
    rig.links.pulls.get(3)!.reject(new ServingError('CANCELLED', 'gone', { reason: 'request_gone' }));
    rig.links.pulls.get(4)!.resolve([{ ...tensor(8), shape: [1, 8] }]);
    await settled();
    expect(running()).toEqual([[2]]);
    expect(rig.local.executed[0]!.rows).toBe(1);
    const answers = rig.links.frames.map(({ ref: { number }, frame }) => [number, frame.ok ? 'ok' : frame.error.reason]);
    expect(answers).toEqual([
      [1, 'pull_timeout'],
      [4, 'pull_mismatch'],
    ]);
    rig.local.end();
    await settled();
    expect(ended()).toEqual([[1, 'ok', undefined]]);
  });

  test('a batch of which no request is left never reaches the instance', async () => {
    await send(fenced(1, [held(1)]));
    rig.links.pulls.get(1)!.reject(new ServingError('UNAVAILABLE', 'no gateway', { reason: 'pull_failed' }));
    await settled();
    expect(running()).toEqual([]);
    expect(ended()).toEqual([[1, 'ok', undefined]]);
    expect(told.of('completion')[0]!.completion.started).toBe(false);
    expect(rig.cluster.unfinished).toBe(0);
  });

  test('an epoch below the highest executes nothing, nor does an equal one of another owner', async () => {
    const other = await rig.join(B);
    expect(await other.remote.claim(5, epoch(2, B))).toEqual({ ok: true, running: [] });
    await send(fenced(1, [member(1)], epoch(1)), fenced(2, [member(2)], epoch(2, A)));
    expect(ended()).toEqual([
      [1, 'refused', 'stale_epoch'],
      [2, 'refused', 'stale_epoch'],
    ]);
    expect(await remote.claim(5, epoch(2, A))).toEqual({ ok: false, highest: epoch(2, B) });
    expect(await remote.claim(5, epoch(3, A))).toEqual({ ok: true, running: [] });
    expect(running()).toEqual([]);
  });

  test('a claim is told what runs, waits or is being pulled', async () => {
    await send(fenced(1, [member(1)]), fenced(2, [member(2, { attempt: 2 })]), fenced(3, [member(3)]), fenced(4, [held(4)]));
    const other = await rig.join(B);
    const claimed = await other.remote.claim(5, epoch(2, B));
    const running = [1, 2, 3, 4].map((number) => ({ ref: ref(number), attempt: number === 2 ? 2 : 1 }));
    expect(claimed).toEqual({ ok: true, running });
  });

  test('what another owner has claimed and does not end well goes back to the gateways; the sender only frees the place', async () => {
    await send(fenced(1, [member(1, { attempt: 2 })]), fenced(2, [member(2)]), fenced(3, [member(3)]));
    const other = await rig.join(B);
    await other.remote.claim(5, epoch(2, B));
    rig.local.end('lost', true, new ServingError('UNAVAILABLE', 'it died', { reason: 'instance_lost' }));
    rig.local.end('lost', false, new ServingError('UNAVAILABLE', 'it died', { reason: 'instance_lost' }));
    rig.local.end('ok');
    await settled();
    expect(rig.links.handedBack).toEqual([
      { number: 1, attempt: 2, started: true, message: 'it died' },
      { number: 2, attempt: 1, started: false, message: 'it died' },
    ]);
    expect(ended()).toEqual([
      [1, 'refused', 'superseded'],
      [2, 'refused', 'superseded'],
      [3, 'ok', undefined],
    ]);
  });

  test.each(['lost', 'failed', 'refused'] as const)(
    'a batch that is %s without its scheduler goes back to the gateways',
    async (outcome) => {
      await send(fenced(1, [member(1), member(2)]), fenced(2, [member(3)]));
      rig.network.cut(WORKER, A);
      await settled();
      rig.local.end(outcome, outcome === 'failed', new ServingError('INTERNAL', 'no'));
      rig.local.end('ok');
      expect(rig.links.handedBack.map(({ number, started }) => [number, started])).toEqual([
        [1, outcome === 'failed'],
        [2, outcome === 'failed'],
      ]);
      expect(rig.cluster.unfinished).toBe(0);
    },
  );

  test('a scheduler that came back is told nothing of what it had sent before', async () => {
    await send(fenced(1, [member(1)]));
    rig.network.cut(WORKER, A);
    await settled();
    rig.network.up(WORKER, rig.cluster);
    await settled();
    expect(remote.connected).toBe(true);
    rig.local.end('lost', true, new ServingError('UNAVAILABLE', 'it died'));
    await settled();
    expect(rig.links.handedBack).toHaveLength(1);
    expect(ended()).toEqual([]);
  });

  test('draining finishes what is here and what comes before it was heard, and refuses what comes later', async () => {
    await send(fenced(1, [member(1)]));
    const drained = rig.cluster.drain(10_000);
    await told.next('draining');
    await send(fenced(2, [member(2)]));
    expect(running()).toEqual([[1], [2]]);
    rig.clock.advance(250_000);
    await settled();
    await send(fenced(3, [member(3)]));
    expect(ended()).toEqual([[3, 'refused', 'worker_draining']]);
    await expect(remote.load(specOf('late'), 'f')).rejects.toMatchObject({ reason: 'worker_draining' });
    rig.local.end();
    rig.local.end();
    expect(await drained).toBe(0);
    await settled();
    expect(ended().slice(1)).toEqual([
      [1, 'ok', undefined],
      [2, 'ok', undefined],
    ]);
    expect(rig.clock.armedCount).toBe(0);
  });

  test('draining gives up at its limit, says how much, and leaves nobody without a word', async () => {
    const other = await rig.join(B);
    await send(fenced(1, [member(1)]), fenced(2, [member(2)]));
    other.remote.execute({ ...fenced(9, [member(9)], epoch(1, B), { instance: 'm_0_1' }), partition: 6 });
    await settled();
    rig.network.cut(WORKER, B);
    const drained = rig.cluster.drain(1000);
    await settled();
    rig.clock.advance(250_000);
    await settled();
    rig.clock.advance(750_000);
    expect(await drained).toBe(3);
    await settled();
    expect(told.of('completion').map(({ completion: { batchId, outcome, started } }) => [batchId, outcome, started])).toEqual([
      [1, 'lost', true],
      [2, 'lost', false],
    ]);
    expect(rig.links.handedBack).toEqual([{ number: 9, attempt: 1, started: true, message: 'the worker ended before the batch did' }]);
  });
});
