// Who is there, as a process sees it: through outages of Redis, losses of its data, and ends of other processes.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { Membership } from '@paceline/cluster-state';
import { ServingError, type Member } from '@paceline/protocol';
import { MembershipBeat } from './membership-beat.js';

const member = (id: string): Member => ({ role: 'worker', id, address: `127.0.0.1:${id.length}`, draining: false });
const SELF: Member = { role: 'gateway', id: 'self', address: '', draining: false };
const BEAT_US = 500_000;

describe('the beat', () => {
  let clock: FakeClock;
  let others: Member[];
  let down: boolean;
  let beats: [Member, number][];
  let left: Member[];
  let heard: (readonly Member[])[];
  let failures: (string | undefined)[];
  let beat: MembershipBeat;

  /** Moves time on by one beat and lets its answer arrive. */
  const next = async (): Promise<void> => {
    clock.advance(BEAT_US);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  const ids = (members: readonly Member[] = []): string[] => members.map(({ id }) => id).filter((id) => id !== SELF.id);

  beforeEach(async () => {
    clock = new FakeClock();
    others = [member('a'), member('bb')];
    down = false;
    beats = [];
    left = [];
    heard = [];
    failures = [];
    const membership: Membership = {
      async beat(self, ttlMs) {
        if (down) throw new ServingError('UNAVAILABLE', 'no Redis', { reason: 'redis_unavailable' });
        beats.push([self, ttlMs]);
        return [self, ...others];
      },
      async look() {
        return others;
      },
      async leave(self) {
        left.push(self);
      },
    };
    beat = new MembershipBeat(SELF, {
      membership,
      clock,
      intervalMs: BEAT_US / 1000,
      onMembers: (members) => heard.push(members),
      onFailure: (error) => failures.push(error?.reason),
    });
    await beat.start();
  });

  test('comes each interval and tells only changes', async () => {
    expect(heard.map(ids)).toEqual([['a', 'bb']]);
    await next();
    await next();
    expect(beats).toHaveLength(3);
    expect(beats[0]?.[1]).toBe(2000);
    expect(heard).toHaveLength(1);
    others = [...others, member('ccc')];
    await next();
    expect(ids(heard.at(-1))).toEqual(['a', 'bb', 'ccc']);
  });

  test('nobody is gone because Redis is', async () => {
    down = true;
    for (let i = 0; i < 20; i++) await next();
    expect(failures).toEqual(['redis_unavailable']);
    expect(beat.failingMs).toBeGreaterThanOrEqual(9500);
    expect(ids(beat.members)).toEqual(['a', 'bb']);
    down = false;
    others = [member('bb')];
    await next();
    expect(failures).toEqual(['redis_unavailable', undefined]);
    expect(beat.failingMs).toBe(0);
    expect(ids(heard.at(-1))).toEqual(['bb']);
  });

  test('a change of what a member says of itself is a change', async () => {
    others = [member('a'), { ...member('bb'), draining: true }];
    await next();
    expect(heard.at(-1)?.map(({ draining }) => draining)).toEqual([false, false, true]);
  });

  test('an announcement does not wait for the next beat', async () => {
    await beat.announce({ draining: true });
    expect(beats.at(-1)?.[0].draining).toBe(true);
    expect(clock.nowUs()).toBe(0);
    expect(clock.armedCount).toBe(1);
  });

  test('stopping takes it out and leaves no timer', async () => {
    await beat.stop();
    expect(left.map(({ id }) => id)).toEqual(['self']);
    expect(clock.armedCount).toBe(0);
    await next();
    expect(beats).toHaveLength(1);
  });
});
