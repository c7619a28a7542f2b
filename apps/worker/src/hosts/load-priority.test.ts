// The system's own view of the priorities of real hosts. Where it does not let us raise them again, they must stay alone.
import { spawn, type ChildProcess } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LoadPriority } from './load-priority.js';

let probe: ChildProcess;
let host: ChildProcess;
beforeEach(() => {
  [probe, host] = [0, 1].map(() => spawn('/bin/cat', { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })) as [
    ChildProcess,
    ChildProcess,
  ];
});
afterEach(() => {
  probe.kill();
  host.kill();
});

/** Whether this machine lets this process move a priority back. */
function mayRaise(): boolean {
  const { pid } = probe;
  setPriority(pid!, getPriority() + 1);
  try {
    setPriority(pid!, getPriority());
    return true;
  } catch {
    return false;
  }
}

test('a host is lowered while it loads, less and less, and gets back what it had; or is left alone', () => {
  const normal = getPriority();
  const priority = new LoadPriority(() => probe.pid);
  const allowed = mayRaise();
  const expected = (niceness: number): number => (allowed ? Math.max(normal, niceness) : normal);
  priority.lower(host.pid, 1000);
  const seen = [0, 14_999_999, 15_000_000].map((us) => {
    priority.ease(1000 + us);
    return getPriority(host.pid);
  });
  expect(seen).toEqual([5, 5, 0].map(expected));
  priority.lower(host.pid, 0);
  expect(getPriority(host.pid)).toBe(expected(5));
  priority.restore(host.pid);
  expect(getPriority(host.pid)).toBe(normal);
  priority.ease(1);
  expect(getPriority(host.pid)).toBe(normal);
});

test('without anyone to try it on, and for processes that are gone, nothing happens', () => {
  const normal = getPriority(host.pid);
  new LoadPriority(() => undefined).lower(host.pid, 0);
  expect(getPriority(host.pid)).toBe(normal);
  const priority = new LoadPriority(() => probe.pid);
  priority.lower(undefined, 0);
  priority.lower(2 ** 22 + 1, 0);
  priority.restore(2 ** 22 + 1);
  priority.lower(2 ** 22 + 1, 0);
  priority.forget(2 ** 22 + 1);
});
