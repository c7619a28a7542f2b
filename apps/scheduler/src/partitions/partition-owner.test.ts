// A scheduler over faked leases, workers and gateways: takeovers, lanes from announcements, losses of workers and leases.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { InMemoryClusterState } from '@paceline/cluster-state';
import type { SchedulerMessage } from '@paceline/protocol';
import { InMemoryWorkers, type FakeWorker } from '@paceline/worker-rpc/testing';
import { envelope } from '../batching/testing/fakes.js';
import { activeWorker, HOME, loadSpec, numbersOf, OwnerRig, settle, TTL_MS } from './testing/owner-rig.js';

let clock: FakeClock;
let state: InMemoryClusterState;
let network: InMemoryWorkers;

const newRig = (id: string): OwnerRig => new OwnerRig(id, { clock, state, network });

const workerWith = (id: string, generation?: number): Promise<FakeWorker> => activeWorker(network, id, generation);
/** Lets time pass in steps that are short beside the lifetime of a lease, so that renewals are answered in between. */
async function pass(us: number): Promise<void> {
  for (let leftUs = us; leftUs >= 0; leftUs -= 100_000) {
    clock.advance(Math.min(leftUs, 100_000));
    await settle();
  }
}

beforeEach(() => {
  clock = new FakeClock();
  state = new InMemoryClusterState(clock);
  network = new InMemoryWorkers();
});

describe('taking over', () => {
  test('owns every partition, asks workers before it tells gateways, and runs what comes on the local instance', async () => {
    const worker = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    expect(rig.owns()).toEqual([0, 1, 2, 3]);
    expect([...worker.epochs.keys()].sort()).toEqual([0, 1, 2, 3]);
    await rig.send([1, 2]);
    expect(numbersOf(worker)).toEqual([[1, 2]]);
    expect(worker.batches[0]).toMatchObject({ partition: HOME, epoch: { owner: 's1' }, batch: { instance: 'g_0' } });
    worker.end();
    await settle();
    expect(rig.statistics.forVersion('m', '1').inferenceCount).toBe(2);
  });

  test('what an earlier owner has running is not run again, but a later attempt of it is', async () => {
    const worker = await workerWith('w1');
    const first = newRig('s1');
    await first.start(['w1']);
    await first.send([7]);
    await first.keeper.stop();
    const second = newRig('s2');
    await second.start(['w1']);
    await second.send([7, 8]);
    // The only instance still has the batch of the first, of which the second knows nothing.
    expect(numbersOf(worker)).toEqual([[7], [8]]);
    await second.send([7]);
    expect(worker.batches).toHaveLength(2);
    worker.end('lost');
    worker.end();
    await settle();
    await second.send([7], 2);
    expect(numbersOf(worker)).toEqual([[7], [8], [7]]);
  });

  test('what was running for an earlier owner runs again when its worker is lost', async () => {
    await workerWith('w1');
    const first = newRig('s1');
    await first.start(['w1']);
    await first.send([7]);
    await first.keeper.stop();
    const second = newRig('s2');
    await second.start(['w1', 'w2']);
    await second.send([7]);
    const other = await workerWith('w2');
    await settle();
    expect(other.batches).toEqual([]);
    network.down('w1');
    await settle();
    await pass(0);
    expect(numbersOf(other)).toEqual([[7]]);
  });

  test('a worker that knows a higher epoch makes it acquire above that', async () => {
    const worker = await workerWith('w1');
    worker.epochs.set(HOME, { number: 41, owner: 'somebody' });
    const rig = newRig('s1');
    await rig.start(['w1']);
    await rig.send([1]);
    expect(worker.batches[0]?.epoch).toEqual({ number: 42, owner: 's1' });
  });

  test('a gateway that goes by a higher epoch makes it acquire above that, once', async () => {
    const worker = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    const last = (): SchedulerMessage | undefined => rig.told.findLast((message) => message.kind === 'owns' && message.partition === HOME);
    rig.owner.onOvertaken(HOME, { number: 41, owner: 'somebody' });
    rig.owner.onOvertaken(HOME, { number: 41, owner: 'somebody' });
    await settle();
    expect(last()).toMatchObject({ epoch: { number: 42, owner: 's1' } });
    // Late word of what it is above already changes nothing, nor does its own epoch.
    rig.owner.onOvertaken(HOME, { number: 40, owner: 'somebody' });
    rig.owner.onOvertaken(HOME, { number: 42, owner: 's1' });
    await settle();
    expect(last()).toMatchObject({ epoch: { number: 42, owner: 's1' } });
    expect(rig.told.filter((message) => message.kind === 'owns' && message.partition === HOME)).toHaveLength(2);
    await rig.send([1]);
    expect(worker.batches[0]?.epoch).toEqual({ number: 42, owner: 's1' });
  });

  test('a batch that is refused for its epoch leads to a higher one; gateways are told, nothing is answered here', async () => {
    const worker = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    worker.epochs.set(HOME, { number: 9, owner: 'other' });
    await rig.send([1]);
    await settle();
    expect(worker.epochs.get(HOME)).toEqual({ number: 10, owner: 's1' });
    expect(rig.frames.size).toBe(0);
    const last = rig.told.findLast((message) => message.kind === 'owns' && message.partition === HOME);
    expect(last).toMatchObject({ epoch: { number: 10 } });
    await rig.send([1]);
    expect(numbersOf(worker)).toEqual([[1]]);
  });

  test('when its lease ends it drops what waits and says nothing; what runs goes on', async () => {
    const worker = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    await rig.send([1]);
    await rig.send([2, 3]);
    rig.keeper.setSchedulers(['s1', 's0', 's2', 's3', 's4']);
    state.leases.renew = () => Promise.reject(new Error('the store is away'));
    state.leases.acquire = () => Promise.reject(new Error('the store is away'));
    await pass(TTL_MS * 1000);
    expect(rig.keeper.held).toEqual([]);
    expect(rig.stoppedReaders.sort()).toEqual([0, 1, 2, 3]);
    worker.end();
    await pass(120_000_000);
    expect(rig.frames.size).toBe(0);
    expect(numbersOf(worker)).toEqual([[1]]);
    expect(rig.statistics.forVersion('m', '1').pendingRequests).toBe(0);
  });
});

describe('workers', () => {
  test('a lost worker: its batch runs on another at once', async () => {
    const first = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1', 'w2']);
    await rig.send([1, 2]);
    const second = await workerWith('w2');
    await settle();
    first.start();
    await settle();
    network.down('w1');
    await settle();
    await pass(0);
    expect(numbersOf(second)).toEqual([[1, 2]]);
  });

  test('a draining worker gets nothing new', async () => {
    const first = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1', 'w2']);
    const second = await workerWith('w2');
    first.drain();
    await settle();
    for (const number of [1, 2]) await rig.send([number]);
    expect(first.batches).toHaveLength(0);
    expect(second.batches.length).toBeGreaterThan(0);
  });

  test('with no instance the request waits for one', async () => {
    const first = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1', 'w2']);
    network.down('w1');
    await settle();
    await rig.send([1]);
    expect(first.batches).toHaveLength(0);
    const second = await workerWith('w2', 2);
    await settle();
    await pass(0);
    expect(numbersOf(second)).toEqual([[1]]);
  });

  test('a retired replica is released when its batches are done, and the others go on', async () => {
    const first = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1', 'w2']);
    await rig.send([1]);
    const second = await workerWith('w2');
    await settle();
    const stopped = first.retire('m', '1', 1);
    await settle();
    await rig.send([2]);
    expect([first.models.size, numbersOf(second)]).toEqual([1, [[2]]]);
    first.end();
    await stopped;
    expect(first.models.size).toBe(0);
  });

  test('a load that is retired everywhere still serves what is under way, then its instances are released', async () => {
    const worker = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    await pass(3_000_000);
    const stopped = worker.retire('m', '1', 1);
    await settle();
    await rig.send([1]);
    await pass(400_000);
    expect([worker.models.size, numbersOf(worker)]).toEqual([1, [[1]]]);
    worker.end();
    await settle();
    await pass(0);
    await stopped;
    expect(worker.models.size).toBe(0);
  });

  test('a newer load takes over what waits for the older', async () => {
    const worker = await workerWith('w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    await rig.send([1]);
    await rig.send([2]);
    await worker.load({} as never, loadSpec(2), 'f2');
    worker.activate('m', '1', 2);
    await settle();
    await pass(0);
    expect(worker.batches.map(({ batch }) => [batch.generation, batch.members[0]?.ref.number])).toEqual([
      [1, 1],
      [2, 2],
    ]);
    const stopped = worker.retire('m', '1', 1);
    await settle();
    expect(worker.models.size).toBe(2);
    worker.end();
    await stopped;
    expect([...worker.models.values()].map(({ spec }) => spec.generation)).toEqual([2]);
  });
});

describe('requests without a lane', () => {
  test('wait for the load, and are refused when it does not come in time', async () => {
    const rig = newRig('s1');
    await rig.start(['w1', 'w2']);
    await rig.send([1]);
    await pass(9_000_000);
    expect(rig.frames.size).toBe(0);
    expect(rig.owner.unopened).toBe(1);
    const worker = await workerWith('w1');
    await settle();
    await pass(0);
    expect(numbersOf(worker)).toEqual([[1]]);
    network.down('w1');
    rig.setWorkers([]);
    await settle();
    rig.intakes.get(HOME)?.onEnvelope(envelope(2, { model: 'other' }));
    await pass(10_000_000);
    expect([...rig.frames].map(([number, frame]) => [number, !frame.ok && frame.error.reason])).toEqual([[2, 'no_worker']]);
  });

  test('are dropped when their client leaves', async () => {
    const rig = newRig('s1');
    await rig.start(['w1']);
    await rig.send([1]);
    rig.cancel(1);
    await pass(20_000_000);
    expect([rig.frames.size, rig.owner.unopened]).toEqual([0, 0]);
  });
});

test('a gateway that connects later is told what is owned', async () => {
  const rig = newRig('s1');
  await rig.start([]);
  rig.told.length = 0;
  rig.owner.onGatewayUp('g2');
  expect(rig.owns()).toEqual([0, 1, 2, 3]);
});

test('a cancel reaches the lane', async () => {
  const worker = await workerWith('w1');
  const rig = newRig('s1');
  await rig.start(['w1']);
  await rig.send([1]);
  await rig.send([2]);
  rig.cancel(2);
  worker.end();
  await settle();
  await pass(0);
  expect(numbersOf(worker)).toEqual([[1]]);
});
