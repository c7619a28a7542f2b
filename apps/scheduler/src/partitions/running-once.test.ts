// What must not run, or not run twice: requests that a worker has already, that were cancelled, or that nobody waits for.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { InMemoryClusterState } from '@paceline/cluster-state';
import { InMemoryWorkers, type FakeWorker } from '@paceline/worker-rpc/testing';
import { activeWorker, numbersOf, OwnerRig, settle } from './testing/owner-rig.js';

let clock: FakeClock;
let state: InMemoryClusterState;
let network: InMemoryWorkers;
let worker: FakeWorker;
let first: OwnerRig;

const newRig = (id: string): OwnerRig => new OwnerRig(id, { clock, state, network });

async function pass(us: number): Promise<void> {
  clock.advance(us);
  await settle();
}

beforeEach(async () => {
  clock = new FakeClock();
  state = new InMemoryClusterState(clock);
  network = new InMemoryWorkers();
  worker = await activeWorker(network, 'w1');
  first = newRig('s1');
  await first.start(['w1']);
});

describe('after a takeover', () => {
  /** `w1` has request 7 on its second attempt for the first owner, which is gone; the second owner can reach a free worker too. */
  async function takenOver(): Promise<[OwnerRig, FakeWorker]> {
    await first.send([7], 2);
    await first.keeper.stop();
    const second = newRig('s2');
    await second.start(['w1', 'w2']);
    return [second, await activeWorker(network, 'w2')];
  }

  test('a request on its second attempt is not executed a third time', async () => {
    const [second, free] = await takenOver();
    await second.send([7], 2);
    await second.send([7], 1);
    await second.send([7], 2);
    expect([numbersOf(worker), numbersOf(free)]).toEqual([[[7]], []]);
    await second.send([7], 3);
    expect([...numbersOf(worker), ...numbersOf(free)]).toEqual([[7], [7]]);
  });

  test('what was kept for a worker that is lost then runs once', async () => {
    const [second, free] = await takenOver();
    await second.send([7], 2, { remainingUs: 1_000_000 });
    await pass(999_000);
    network.down('w1');
    await settle();
    await second.send([7], 2, { remainingUs: 1000 });
    expect(numbersOf(free)).toEqual([[7]]);
  });

  test('what a worker had long ago has ended: it is held up no longer, what is newer still is', async () => {
    const [second, free] = await takenOver();
    const wait = async (seconds: number): Promise<void> => {
      for (let step = 0; step < 10 * seconds; step++) await pass(100_000);
    };
    await wait(50);
    network.cut('w1', 's2');
    await settle();
    network.up('w1', worker);
    await settle();
    await wait(20);
    await second.send([7], 2);
    expect(numbersOf(free)).toEqual([]);
    worker.end();
    await wait(60);
    await second.send([7], 2);
    expect([...numbersOf(worker), ...numbersOf(free)]).toEqual([[7], [7]]);
  });

  test('what was kept and is over by then runs no more', async () => {
    const [second, free] = await takenOver();
    await second.send([7], 2, { remainingUs: 1_000_000 });
    await pass(1_000_000);
    network.down('w1');
    await settle();
    await pass(0);
    expect(numbersOf(free)).toEqual([]);
  });
});

describe('a worker whose connection comes late', () => {
  test('is waited for before gateways are told', async () => {
    await first.send([7]);
    await first.keeper.stop();
    network.down('w1');
    const second = newRig('s2');
    second.setWorkers(['w1']);
    second.keeper.setSchedulers(['s2']);
    await pass(0);
    expect(second.owns()).toEqual([]);
    network.up('w1', worker);
    await settle();
    expect(second.owns()).toEqual([0, 1, 2, 3]);
    await second.send([7]);
    expect(numbersOf(worker)).toEqual([[7]]);
  });

  test('is not waited for longer than a second; what has not begun by then is left to it', async () => {
    await first.send([7, 8]);
    await first.keeper.stop();
    network.down('w1');
    const second = newRig('s2');
    await second.start(['w1', 'w2']);
    expect(second.owns()).toEqual([0, 1, 2, 3]);
    const free = await activeWorker(network, 'w2');
    await settle();
    // The only place at the worker that is there, and the one behind it, are taken by others.
    await second.send([1]);
    await second.send([2]);
    await second.send([7]);
    network.up('w1', worker);
    await settle();
    await second.send([8]);
    while (free.waiting.length > 0) {
      free.end();
      await pass(0);
    }
    expect([...numbersOf(free), ...numbersOf(worker)].flat().filter((number) => number >= 7)).toEqual([7, 8]);
    // Should that worker be lost after all, they run elsewhere.
    network.down('w1');
    await settle();
    await pass(0);
    expect(
      numbersOf(free)
        .flat()
        .filter((number) => number >= 7),
    ).toEqual([7, 8]);
  });
});

test('what came back from a cut connection and still waits is left to the worker once that is there again', async () => {
  await first.send([1]);
  network.cut('w1', 's1');
  await settle();
  network.up('w1', worker);
  await settle();
  await pass(0);
  expect(numbersOf(worker)).toEqual([[1]]);
});

test('a cancel that is there before its request keeps it from running, whoever owns the partition by then', async () => {
  const second = newRig('s2');
  second.cancel(5);
  first.cancel(5);
  await first.send([5, 6]);
  expect(numbersOf(worker)).toEqual([[6]]);
  worker.end();
  await first.keeper.stop();
  await second.start(['w1']);
  await second.send([5]);
  expect(numbersOf(worker)).toEqual([[6]]);
  expect([first.frames.size, second.frames.size]).toEqual([0, 0]);
});

describe('a request past its time', () => {
  test('is dropped without a reply, at the intake', async () => {
    await first.send([1], 1, { remainingUs: 0 });
    expect([worker.batches.length, first.frames.size]).toEqual([0, 0]);
    expect(first.statistics.forVersion('m', '1').pendingRequests).toBe(0);
  });

  test('is dropped where it would be dispatched; others of its batch run', async () => {
    await first.send([1]);
    await first.send([2]);
    await first.send([3, 5], 1, { remainingUs: 1000 });
    await first.send([4], 1, { remainingUs: 1001 });
    await pass(1000);
    while (worker.waiting.length > 0) {
      worker.end();
      await settle();
      await pass(0);
    }
    expect(worker.batches.map(({ batch }) => [batch.rows, ...batch.members.map(({ ref }) => ref.number)])).toEqual([
      [1, 1],
      [2, 2, 4],
    ]);
    expect(first.frames.size).toBe(0);
    expect(first.statistics.forVersion('m', '1').pendingRequests).toBe(0);
  });

  test('is dropped where it waited for a lane', async () => {
    const rig = newRig('s3');
    await first.keeper.stop();
    network.down('w1');
    await rig.start(['w1', 'w2']);
    await rig.send([1], 1, { remainingUs: 1000 });
    await rig.send([2], 1, { remainingUs: 2000 });
    await pass(1000);
    const other = await activeWorker(network, 'w2');
    await settle();
    await pass(0);
    expect(numbersOf(other)).toEqual([[2]]);
  });
});
