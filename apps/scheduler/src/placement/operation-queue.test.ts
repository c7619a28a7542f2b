// Order within a key, independence between keys, and a limit that holds whatever arrives while places change hands.
import { describe, expect, test } from '@jest/globals';
import { Limiter, OperationQueue } from './operation-queue.js';
import { flush, gate } from './testing/fakes.js';

describe('OperationQueue', () => {
  test('runs one key in order, also after a failure, and other keys beside it', async () => {
    const queue = new OperationQueue();
    const log: string[] = [];
    const first = gate<void>();
    const failing = queue.run('a', async () => {
      log.push('a1');
      await first.promise;
      throw new Error('a1 failed');
    });
    const second = queue.run('a', () => Promise.resolve(log.push('a2')));
    await queue.run('b', () => Promise.resolve(log.push('b1')));
    expect(log).toEqual(['a1', 'b1']);
    first.open();
    await expect(failing).rejects.toThrow('a1 failed');
    await second;
    expect(log).toEqual(['a1', 'b1', 'a2']);
  });
});

describe('Limiter', () => {
  test('never runs more than its limit, in the order of arrival, also for those who come as a place is handed on', async () => {
    const limiter = new Limiter(2);
    const gates = Array.from({ length: 6 }, () => gate<void>());
    const started: number[] = [];
    let running = 0;
    const run = (i: number): Promise<void> =>
      limiter.run(async () => {
        started.push(i);
        running += 1;
        expect(running).toBeLessThanOrEqual(2);
        await gates[i]?.promise;
        running -= 1;
      });
    const runs = [run(0), run(1), run(2)];
    await flush();
    expect(started).toEqual([0, 1]);
    gates[0]?.open();
    await runs[0];
    runs.push(run(3), run(4), run(5));
    await flush();
    expect(started).toEqual([0, 1, 2]);
    for (const held of gates) held.open();
    await Promise.all(runs);
    expect(started).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('gives a place back after a failure', async () => {
    const limiter = new Limiter(1);
    await expect(limiter.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await limiter.run(() => Promise.resolve(1))).toBe(1);
  });
});
