/** What is asked of the system, and the system's own view of real processes. Where it allows nothing they must stay as they are. */
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LoadPriority, type SetPolicy } from './load-priority.js';

const LONG_US = 15_000_000;

describe('what is asked for', () => {
  const PROBE = 1;
  let asked: string[];
  let allowed: boolean;
  const set: SetPolicy = async (pid, policy) => {
    asked.push(`${pid} ${policy}`);
    return allowed;
  };
  const priority = (probe: number | undefined = PROBE): LoadPriority => new LoadPriority(() => probe, set);
  beforeEach(() => {
    asked = [];
    allowed = true;
  });

  test('a host gives way while it loads, and is as others once it serves', async () => {
    const hosts = priority();
    hosts.lower(7, 0);
    await hosts.settled;
    expect(asked).toEqual(['1 idle', '1 other', '7 idle']);
    hosts.restore(7);
    hosts.restore(7);
    await hosts.settled;
    expect(asked.slice(3)).toEqual(['7 other']);
  });

  test('a load that lasts gets its share, once', async () => {
    const hosts = priority();
    hosts.lower(7, 1000);
    await hosts.settled;
    asked = [];
    hosts.ease(999 + LONG_US);
    await hosts.settled;
    expect(asked).toEqual([]);
    hosts.ease(1000 + LONG_US);
    hosts.ease(1001 + LONG_US);
    hosts.restore(7);
    await hosts.settled;
    expect(asked).toEqual(['7 other']);
  });

  test('what served or ended before its turn came is not lowered', async () => {
    const hosts = priority();
    hosts.lower(7, 0);
    hosts.lower(8, 0);
    hosts.restore(7);
    hosts.forget(8);
    await hosts.settled;
    expect(asked).toEqual(['1 idle', '1 other', '7 other']);
  });

  test('nothing, where it could not be taken back or there is nobody to try it on', async () => {
    allowed = false;
    const hosts = priority();
    hosts.lower(7, 0);
    hosts.restore(7);
    await hosts.settled;
    expect(asked).toEqual(['1 idle']);
    const alone = new LoadPriority(() => undefined, set);
    alone.lower(7, 0);
    alone.lower(undefined, 0);
    alone.restore(7);
    await alone.settled;
    expect(asked).toEqual(['1 idle']);
  });
});

describe('real processes', () => {
  let probe: ChildProcess;
  let host: ChildProcess;
  beforeEach(() => {
    [probe, host] = [0, 1].map(() => spawn('/bin/cat', { stdio: ['pipe', 'ignore', 'ignore'] })) as [ChildProcess, ChildProcess];
  });
  afterEach(() => {
    probe.kill();
    host.kill();
  });

  /** The policy's number in the system: 0 as usual, 5 idle. */
  const policyOf = (pid: number): number => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38]);
  };

  test('are idle while they load where that can be taken back, and as before afterwards', async () => {
    const priority = new LoadPriority(() => probe.pid);
    priority.lower(host.pid, 0);
    await priority.settled;
    // Without the right to raise them again, the probe is left behind and nobody else is touched.
    const mayRaise = policyOf(probe.pid!) === 0;
    expect(policyOf(host.pid!)).toBe(mayRaise ? 5 : 0);
    priority.restore(host.pid);
    await priority.settled;
    expect(policyOf(host.pid!)).toBe(0);
  });
});
