// Two lanes whose instances stand on one GPU never have it run two batches, and take turns.
import { expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { StatisticsRegistry } from '@paceline/telemetry';
import { clusterSharesOf, sharesOf } from '../workers/shared-devices.js';
import { DeviceCredits } from './device-credits.js';
import { Lanes } from './lanes.js';
import { envelope, FakeWorker, laneSpec, RecordedReplies } from './testing/fakes.js';

function rig(models: readonly string[], instances: readonly string[] = ['w/g_0'], count = 1) {
  const clock = new FakeClock();
  const worker = new FakeWorker();
  const credits = new DeviceCredits();
  const lanes = new Lanes({ clock, link: worker, replies: new RecordedReplies(), statistics: new StatisticsRegistry() });
  worker.setListener(lanes);
  const names = Array.from({ length: count }, (_, n) => `g_${n}`);
  const deviceOf = clusterSharesOf(() => ({ instances: names, devices: names.map(() => 'gpu:0') }), credits);
  for (const model of models) lanes.open({ ...laneSpec({ model, maxBatchSize: 1, instances }), deviceOf });
  let number = 0;
  const send = (model: string): void => {
    lanes.find(model, '1')?.enqueue(envelope(number++, { model }));
    clock.advance(0);
  };
  /** Models in the order in which batches were sent. */
  const sent = (): string => worker.batches.map(({ model }) => model).join('');
  const complete = (index: number): void => {
    worker.complete(index, 'ok');
    clock.advance(0);
  };
  return { lanes, worker, send, sent, complete, credits };
}

test('only what a worker has put on a GPU shares, by its device there', () => {
  const credits = new DeviceCredits();
  const deviceOf = sharesOf({ instances: ['g_0', 'g_1', 'c_0', 'g_2'], devices: ['gpu:1', 'gpu:0', 'cpu', 'gpu:1'] }, credits);
  expect(deviceOf?.('g_0')).toEqual({ slot: credits.of('gpu:1'), limit: 2 });
  expect(deviceOf?.('g_1')).toEqual({ slot: credits.of('gpu:0'), limit: 1 });
  expect([deviceOf?.('c_0'), deviceOf?.('x_0')]).toEqual([undefined, undefined]);
  expect(deviceOf?.('g_2')?.slot).toBe(credits.of('gpu:1'));
  expect(credits.of('gpu:1')).not.toBe(credits.of('gpu:0'));
  expect(sharesOf({ instances: ['g_0'] }, credits)).toBeUndefined();
  expect(sharesOf({ instances: ['g_0'], devices: ['cpu'] }, credits)).toBeUndefined();
});

test('a worker that joins later brings its own devices', () => {
  const credits = new DeviceCredits();
  const at = new Map([['w', { instances: ['g_0'], devices: ['gpu:0'] }]]);
  const deviceOf = clusterSharesOf((worker) => at.get(worker), credits);
  expect(deviceOf('v/g_0')).toBeUndefined();
  at.set('v', { instances: ['g_0'], devices: ['gpu:0'] });
  expect(deviceOf('v/g_0')?.slot).not.toBe(deviceOf('w/g_0')?.slot);
});

test('one batch at a time over all lanes, and each lane has its turn', () => {
  const { send, sent, complete } = rig(['a', 'b', 'c']);
  for (let i = 0; i < 4; i++) for (const model of ['a', 'b', 'c']) send(model);
  expect(sent()).toBe('a');
  for (let index = 0; index < 11; index++) {
    complete(index);
    expect(sent()).toHaveLength(index + 2);
  }
  expect(sent()).toBe('abcabcabcabc');
});

test('a model with two instances on the device has two batches there', () => {
  const { send, sent } = rig(['a'], ['w/g_0', 'w/g_1'], 2);
  for (let i = 0; i < 3; i++) send('a');
  expect(sent()).toBe('aa');
});

test('the devices of two workers are two devices', () => {
  const { send, sent } = rig(['a', 'b'], ['w/g_0', 'v/g_0']);
  for (const model of ['a', 'b', 'a', 'b']) send(model);
  expect(sent()).toBe('ab');
});

test('a lane that ends with a batch under way gives the device back', async () => {
  const { lanes, send, sent, complete } = rig(['a', 'b']);
  send('a');
  send('b');
  const drained = lanes.drain('a', '1', 1);
  complete(0);
  await drained;
  expect(sent()).toBe('ab');
  complete(1);
  send('b');
  expect(sent()).toBe('abb');
});
