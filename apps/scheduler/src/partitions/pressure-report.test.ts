// What gateways hear of lanes, and how often.
import { expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { LanePressure } from '@paceline/protocol';
import { PressureReport } from './pressure-report.js';

test('a change is told at the next look, what stays each half second, and the end once', () => {
  const clock = new FakeClock();
  const told: [number, number][] = [];
  let queued = 0;
  const pressures = (): LanePressure[] => [{ model: 'm', version: '1', queued, maxQueued: 10, expectedWaitUs: 5 }];
  const broadcast = (message: { readonly kind: string; readonly lanes?: readonly LanePressure[] }): void => {
    for (const lane of message.lanes ?? []) told.push([clock.nowUs() / 1000, lane.queued]);
  };
  const report = new PressureReport({ clock, pressures, broadcast });
  report.start();
  clock.advance(1_000_000);
  expect(told).toEqual([]);
  queued = 3;
  clock.advance(150_000);
  queued = 4;
  clock.advance(850_000);
  expect(told).toEqual([
    [1100, 3],
    [1200, 4],
    [1700, 4],
  ]);
  queued = 0;
  clock.advance(2_000_000);
  expect(told.slice(3)).toEqual([[2100, 0]]);
  report.stop();
  expect(clock.armedCount).toBe(0);
});
