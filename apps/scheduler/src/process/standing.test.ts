// When a scheduler takes part: with gateways and workers at hand, and not for long without.
import { expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { Member } from '@paceline/protocol';
import { Standing } from './standing.js';

const GRACE_MS = 5000;
const GATEWAY: Member = { role: 'gateway', id: 'aaaaaaaaaaaaaaaa', address: '127.0.0.1:1', draining: false };

const WORKER: Member = { ...GATEWAY, role: 'worker', id: 'bbbbbbbbbbbbbbbb' };

function standing(): { standing: Standing; clock: FakeClock; connect(gateways: number, workers?: number): void; changes: boolean[] } {
  const clock = new FakeClock();
  const changes: boolean[] = [];
  let connected = { gateways: 0, workers: 0 };
  const made = new Standing({ clock, graceMs: GRACE_MS, connected: () => connected, onChange: (takesPart) => changes.push(takesPart) });
  const connect = (gateways: number, workers = 0): void => {
    connected = { gateways, workers };
    made.look();
  };
  return { standing: made, clock, connect, changes };
}

test('it begins with the first gateway that is reached', () => {
  const { standing: own, clock, connect, changes } = standing();
  own.setMembers([]);
  own.setMembers([GATEWAY]);
  clock.advance(10 * GRACE_MS * 1000);
  expect(changes).toEqual([]);
  connect(1);
  expect(changes).toEqual([true]);
});

test('it ends when gateways are there and none is reached, and begins anew with the next that is', () => {
  const { standing: own, clock, connect, changes } = standing();
  own.setMembers([GATEWAY]);
  connect(1);
  connect(0);
  clock.advance(GRACE_MS * 1000 - 1);
  expect(own.takesPart).toBe(true);
  clock.advance(1);
  expect(changes).toEqual([true, false]);
  connect(1);
  expect(changes).toEqual([true, false, true]);
});

test('gateways that went, or come back in time, change nothing', () => {
  const { standing: own, clock, connect, changes } = standing();
  own.setMembers([GATEWAY]);
  connect(1);
  connect(0);
  own.setMembers([{ ...GATEWAY, draining: true }]);
  clock.advance(10 * GRACE_MS * 1000);
  own.setMembers([GATEWAY]);
  clock.advance(GRACE_MS * 500);
  connect(2);
  clock.advance(10 * GRACE_MS * 1000);
  expect(changes).toEqual([true]);
  expect(clock.armedCount).toBe(0);
});

test('with workers that are there it begins and stays only while one is reached', () => {
  const { standing: own, clock, connect, changes } = standing();
  own.setMembers([GATEWAY, WORKER]);
  connect(1);
  expect([changes, own.missing]).toEqual([[], 'worker']);
  connect(1, 1);
  connect(1, 0);
  clock.advance(GRACE_MS * 1000 - 1);
  expect(changes).toEqual([true]);
  clock.advance(1);
  connect(2, 0);
  expect(changes).toEqual([true, false]);
  // Without any worker at all there is nothing to be reached.
  own.setMembers([GATEWAY, { ...WORKER, draining: true }]);
  expect([changes, own.missing]).toEqual([[true, false, true], undefined]);
});

test('closed, it waits for nothing', () => {
  const { standing: own, clock, connect } = standing();
  own.setMembers([GATEWAY]);
  connect(1);
  connect(0);
  own.close();
  expect(clock.armedCount).toBe(0);
  own.look();
  expect(clock.armedCount).toBe(0);
});
