/** What is counted as the time between two batches, and what is not. */
import { expect, test } from '@jest/globals';
import { Turnaround } from './turnaround.js';

/** `runs` batches of 10 ms after each other, with 2 ms between them. */
function observe(turnaround: Turnaround, runs: number, backlog: boolean, instances = 1): void {
  for (let i = 1; i <= runs; i++) turnaround.observe(10_000, backlog, instances, (i * 12_000) / instances);
}

test('learns what lies between the batches of a backlog, whatever the number of instances', () => {
  for (const instances of [1, 3]) {
    const turnaround = new Turnaround();
    observe(turnaround, 200, true, instances);
    expect(turnaround.us).toBeCloseTo(2000, -1);
  }
});

test('does not count that there was nothing to do', () => {
  const turnaround = new Turnaround();
  observe(turnaround, 200, false);
  expect(turnaround.us).toBe(0);
});

test('is nothing where batches are staged, which takes a dozen of them to show', () => {
  const turnaround = new Turnaround();
  observe(turnaround, 200, true);
  for (let i = 1; i <= 40; i++) turnaround.observe(10_000, true, 1, 200 * 12_000 + i * 10_000);
  expect(turnaround.us).toBeLessThan(200);
});
