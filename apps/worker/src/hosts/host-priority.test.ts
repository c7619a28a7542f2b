/** What is asked of the system, and the system's own view of a real process. Where it allows nothing it must stay as it is. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SCHED_IDLE, SCHED_OTHER, schedulingPolicyOf } from '@paceline/nest-kit';
import { HostPriority } from './host-priority.js';

const LONG_US = 15_000_000;

describe('what is asked for', () => {
  let asked: string[];
  const priority = (allowed = true, batch = false): HostPriority =>
    new HostPriority({
      inheritsBatch: () => batch,
      canTakeBack: async () => allowed,
      set: async (pid, policy) => asked.push(`${pid} ${policy}`),
    });
  beforeEach(() => {
    asked = [];
  });

  test('a host gives way while it loads, and is as others once it serves', async () => {
    const hosts = priority();
    hosts.lower(7, 0);
    await hosts.settled;
    expect(asked).toEqual(['7 idle']);
    hosts.restore(7);
    hosts.restore(7);
    await hosts.settled;
    expect(asked).toEqual(['7 idle', '7 other']);
  });

  test('a host of a batch process is made an ordinary one, before it gives way', async () => {
    const hosts = priority(true, true);
    hosts.started(7);
    hosts.lower(7, 0);
    hosts.started(undefined);
    await hosts.settled;
    expect(asked).toEqual(['7 other', '7 idle']);
    const ordinary = priority();
    ordinary.started(8);
    await ordinary.settled;
    expect(asked).toHaveLength(2);
  });

  test('a load that lasts gets its share, once', async () => {
    const hosts = priority();
    hosts.lower(7, 1000);
    hosts.ease(999 + LONG_US);
    await hosts.settled;
    expect(asked).toEqual(['7 idle']);
    hosts.ease(1000 + LONG_US);
    hosts.ease(1001 + LONG_US);
    hosts.restore(7);
    await hosts.settled;
    expect(asked).toEqual(['7 idle', '7 other']);
  });

  test('what served or ended before its turn came is not lowered', async () => {
    const hosts = priority();
    hosts.lower(7, 0);
    hosts.lower(8, 0);
    hosts.restore(7);
    hosts.forget(8);
    await hosts.settled;
    expect(asked).toEqual(['7 other']);
  });

  test('nothing, where it could not be taken back or there is no process', async () => {
    const hosts = priority(false);
    hosts.lower(7, 0);
    hosts.restore(7);
    await hosts.settled;
    const others = priority();
    others.lower(undefined, 0);
    others.restore(undefined);
    others.restore(7);
    await others.settled;
    expect(asked).toEqual([]);
  });
});

describe('a real process', () => {
  let host: ChildProcess;
  beforeEach(() => void (host = spawn('/bin/cat', { stdio: ['pipe', 'ignore', 'ignore'] })));
  afterEach(() => void host.kill());

  const policy = (): number => schedulingPolicyOf(host.pid);
  const chrt = (...args: readonly string[]): boolean => spawnSync('chrt', [...args, '--pid', '0', String(host.pid)]).status === 0;

  test('is idle while it loads where that can be taken back, and as before afterwards', async () => {
    const priority = new HostPriority();
    priority.lower(host.pid, 0);
    await priority.settled;
    const lowered = policy();
    priority.restore(host.pid);
    await priority.settled;
    expect(policy()).toBe(SCHED_OTHER);
    // Now it does not matter any more what becomes of it.
    const mayTakeBack = chrt('--idle') && chrt('--other');
    expect(lowered).toBe(mayTakeBack ? SCHED_IDLE : SCHED_OTHER);
  });
});
