// What gateways are told when a worker is lost that had completed batches: its replies may be lost with it.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { InMemoryClusterState } from '@paceline/cluster-state';
import { InMemoryWorkers } from '@paceline/worker-rpc/testing';
import { activeWorker, OwnerRig, settle } from './testing/owner-rig.js';

let clock: FakeClock;
let network: InMemoryWorkers;
let newRig: (id: string) => OwnerRig;

beforeEach(() => {
  clock = new FakeClock();
  network = new InMemoryWorkers();
  const state = new InMemoryClusterState(clock);
  newRig = (id) => new OwnerRig(id, { clock, state, network });
});

describe('a worker that is lost after it has completed batches', () => {
  test('leaves answers in doubt that are told by gateway, with their attempts, once', async () => {
    const worker = await activeWorker(network, 'w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    await rig.send([1]);
    await rig.send([2], 3);
    await rig.send([3], undefined, { ref: { gateway: 'h', number: 3 } });
    while (worker.waiting.length > 0) {
      worker.end();
      await settle();
      clock.advance(0);
      await settle();
    }
    network.down('w1');
    await settle();
    const inDoubt = new Map(rig.inDoubt);
    expect(inDoubt.get('g')).toEqual([
      { number: 1, attempt: 1 },
      { number: 2, attempt: 3 },
    ]);
    expect(inDoubt.get('h')).toEqual([{ number: 3, attempt: 1 }]);
    network.up('w1', worker);
    await settle();
    network.down('w1');
    await settle();
    expect(rig.inDoubt).toHaveLength(2);
  });

  test.each(['lost', 'failed'] as const)('leaves none of a batch that ended as %s', async (outcome) => {
    const worker = await activeWorker(network, 'w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    await rig.send([1]);
    worker.end(outcome);
    await settle();
    network.down('w1');
    await settle();
    expect(rig.inDoubt).toEqual([]);
  });

  test('leaves none of those that it answered five seconds ago', async () => {
    const worker = await activeWorker(network, 'w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    for (const number of [1, 2]) {
      await rig.send([number]);
      worker.end();
      await settle();
      // In steps that are short beside the lifetime of a lease.
      for (let step = 0; step < 30; step++) {
        clock.advance(100_000);
        await settle();
      }
    }
    network.down('w1');
    await settle();
    expect(rig.inDoubt).toEqual([['g', [{ number: 2, attempt: 1 }]]]);
  });

  test('leaves none when it was draining: its replies have arrived', async () => {
    const worker = await activeWorker(network, 'w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    await rig.send([1]);
    worker.end();
    worker.drain();
    await settle();
    network.down('w1');
    await settle();
    expect(rig.inDoubt).toEqual([]);
  });

  test('leaves none when it was the scheduler that went', async () => {
    const worker = await activeWorker(network, 'w1');
    const rig = newRig('s1');
    await rig.start(['w1']);
    await rig.send([1]);
    worker.end();
    await settle();
    await rig.workers.close();
    rig.workers.onDown('w1', 'closed');
    expect(rig.inDoubt).toEqual([]);
  });
});
