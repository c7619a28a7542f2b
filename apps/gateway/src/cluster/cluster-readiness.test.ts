// When a gateway of a cluster welcomes requests, and what it sits out.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import type { Member } from '@paceline/protocol';
import { ClusterReadiness } from './cluster-readiness.js';

const member = (role: Member['role'], id: string, draining = false): Member => ({ role, id, address: 'h:1', draining });

describe('readiness', () => {
  let clock: FakeClock;
  let redisFailingMs: number;
  let links: { schedulers: string[]; workers: string[] };
  let members: readonly Member[] | undefined;
  let modelsReady: boolean;
  let readiness: ClusterReadiness;

  beforeEach(() => {
    clock = new FakeClock();
    redisFailingMs = 0;
    links = { schedulers: ['s'], workers: ['w'] };
    members = [member('gateway', 'g'), member('scheduler', 's'), member('worker', 'w')];
    modelsReady = true;
    readiness = new ClusterReadiness({
      clock,
      redisFailingMs: () => redisFailingMs,
      links,
      members: () => members,
      modelsReady: () => modelsReady,
    });
  });

  test('a new gateway waits for all that is there', () => {
    members = undefined;
    expect(readiness.waitsFor()).toEqual(['the list of members']);
    members = [member('scheduler', 's'), member('worker', 'w'), member('worker', 'x'), member('worker', 'leaving', true)];
    modelsReady = false;
    expect(readiness.waitsFor()).toEqual(['worker x', 'models']);
    links.workers.push('x');
    modelsReady = true;
    expect(readiness.ready).toBe(true);
  });

  test('but not for ever for one that does not come', () => {
    links.workers = [];
    expect(readiness.waitsFor()).toEqual(['worker w']);
    clock.advance(5_000_000);
    expect(readiness.ready).toBe(true);
  });

  test('it never begins without a scheduler', () => {
    links.schedulers = [];
    clock.advance(60_000_000);
    expect(readiness.waitsFor()).toEqual(['a scheduler']);
  });

  test('later it sits out some seconds without Redis or schedulers, and newcomers do not matter', () => {
    expect(readiness.ready).toBe(true);
    members = [...(members ?? []), member('worker', 'new')];
    links.schedulers = [];
    redisFailingMs = 4900;
    clock.advance(4_900_000);
    expect(readiness.ready).toBe(true);
    redisFailingMs = 5100;
    clock.advance(200_000);
    expect(readiness.waitsFor()).toEqual(['Redis', 'a scheduler']);
    links.schedulers = ['t'];
    redisFailingMs = 0;
    expect(readiness.ready).toBe(true);
  });

  test('the grace begins when the last scheduler goes, however rarely somebody asks', () => {
    expect(readiness.ready).toBe(true);
    clock.advance(60_000_000);
    links.schedulers = [];
    readiness.onSchedulerDown();
    clock.advance(4_000_000);
    expect(readiness.ready).toBe(true);
    clock.advance(2_000_000);
    expect(readiness.ready).toBe(false);
  });
});
