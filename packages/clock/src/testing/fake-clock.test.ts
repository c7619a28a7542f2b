// The clock that every other time-dependent test leans on.
import { describe, expect, test } from '@jest/globals';
import { FakeClock } from './index.js';

describe('FakeClock', () => {
  test('stands still until it is moved, and fires timers at their own time in order', () => {
    const clock = new FakeClock();
    const fired: [string, number][] = [];
    clock.setTimer(300, () => fired.push(['late', clock.nowUs()]));
    clock.setTimer(100, () => {
      fired.push(['early', clock.nowUs()]);
      clock.setTimer(50, () => fired.push(['armed by early', clock.nowUs()]));
    });
    clock.setTimer(100, () => fired.push(['same time, armed later', clock.nowUs()]));
    expect(fired).toEqual([]);
    clock.advance(250);
    expect(fired).toEqual([
      ['early', 100],
      ['same time, armed later', 100],
      ['armed by early', 150],
    ]);
    expect(clock.nowUs()).toBe(250);
    clock.advance(50);
    expect(fired.at(-1)).toEqual(['late', 300]);
    expect(clock.armedCount).toBe(0);
  });

  test('a cancelled timer never fires', () => {
    const clock = new FakeClock();
    let fired = false;
    const timer = clock.setTimer(10, () => (fired = true));
    timer.cancel();
    timer.cancel();
    clock.advance(100);
    expect(fired).toBe(false);
    expect(clock.armedCount).toBe(0);
  });
});
