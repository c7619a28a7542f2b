// The link ports over real sockets, and what only sockets do: cuts, silence, full buffers and things too large.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { systemClock, type Clock } from '@paceline/clock';
import { FakeClock } from '@paceline/clock/testing';
import { FaultyProxy, until } from '@paceline/link/testing';
import { ServingError, type Member, type ReplyFrame } from '@paceline/protocol';
import { describeLinks, GatewayReports, InMemoryLinks, SchedulerReports } from '../testing/index.js';
import { createGatewayLinks } from './gateway-links.js';
import type { LinkSetup } from './link-setup.js';
import type { GatewayLinks, WorkerLinks } from './ports.js';
import { createSchedulerLinks } from './scheduler-links.js';
import { createWorkerLinks } from './worker-links.js';

jest.setTimeout(30_000);

const SECRET = Buffer.from('secret of the cluster');

describeLinks('TCP', () => {
  const setup = (id: string): LinkSetup => ({ clock: systemClock, id, secret: SECRET });
  return {
    gateway: (id, listener) => createGatewayLinks(setup(id), listener),
    scheduler: (id, listener) => createSchedulerLinks(setup(id), listener),
    worker: (id) => createWorkerLinks(setup(id)),
    until,
  };
});

describeLinks('in memory', () => {
  const links = new InMemoryLinks();
  return {
    gateway: (id, listener) => links.gateway(id, listener),
    scheduler: (id, listener) => links.scheduler(id, listener),
    worker: (id) => links.worker(id),
    until,
  };
});

describe('links over sockets', () => {
  const A = 'aaaaaaaaaaaaaaaa';
  const ref = (number: number): { gateway: string; number: number } => ({ gateway: A, number });
  const frame = (bytes: number): ReplyFrame => ({
    ok: true,
    index: 0,
    final: true,
    outputs: [{ name: 'OUT', datatype: 'UINT8', shape: [bytes], data: new Uint8Array(bytes) }],
    timings: undefined,
  });
  let reports: GatewayReports;
  let gateway: GatewayLinks;
  let proxy: FaultyProxy;
  let workers: WorkerLinks[];
  let member: Member;
  let problems: string[];

  beforeEach(() => {
    reports = new GatewayReports();
    workers = [];
    problems = [];
  });
  afterEach(async () => {
    for (const worker of workers) await worker.close();
    await gateway.close();
    await proxy.close();
  });

  async function joined(
    clock: Clock,
    atWorker: Partial<LinkSetup> & { pullLimitMs?: number } = {},
    atGateway: Partial<LinkSetup> = {},
  ): Promise<WorkerLinks> {
    gateway = createGatewayLinks({ clock, id: A, secret: SECRET, ...atGateway }, reports);
    proxy = await FaultyProxy.to(await gateway.listen('127.0.0.1', 0));
    member = { role: 'gateway', id: A, address: proxy.address, draining: false };
    const worker = createWorkerLinks({
      clock,
      id: 'bbbbbbbbbbbbbbbb',
      secret: SECRET,
      onProblem: (problem) => void problems.push(problem),
      ...atWorker,
    });
    workers.push(worker);
    worker.setMembers([member]);
    await until('it is connected', () => worker.gateways.length === 1 && gateway.workers.length === 1);
    return worker;
  }

  test('cuts during replies and pulls cost nothing', async () => {
    const worker = await joined(systemClock);
    const pulls: Promise<unknown>[] = [];
    reports.tensors.set(1, [{ name: 'IN', datatype: 'UINT8', shape: [2_000_000], data: new Uint8Array(2_000_000).fill(8) }]);
    let sent = 0;
    for (let round = 0; round < 6; round++) {
      for (let i = 0; i < 100; i++) worker.send(ref(sent++), frame(i % 20 === 0 ? 100_000 : 600));
      pulls.push(worker.pull(ref(1)));
      const seen = reports.frames.length + 10;
      await until('some have arrived', () => reports.frames.length >= seen);
      proxy.cut();
    }
    await until('all have arrived', () => reports.frames.length === sent);
    await Promise.all(pulls);
    expect(reports.frames.map(([number]) => number).sort((a, b) => a - b)).toEqual(Array.from({ length: sent }, (_, i) => i));
  });

  test('one pull serves all who want the same at the same time', async () => {
    const worker = await joined(systemClock);
    reports.tensors.set(1, []);
    const both = [worker.pull(ref(1)), worker.pull(ref(1))];
    expect(both[0]).toBe(both[1]);
    await Promise.all(both);
    expect(reports.asked).toBe(1);
    await worker.pull(ref(1));
    expect(reports.asked).toBe(2);
  });

  test('a pull that gets no answer ends with its limit, a late answer harms nobody', async () => {
    const clock = new FakeClock();
    const worker = await joined(clock, { pullLimitMs: 2500 });
    reports.tensors.set(1, []);
    proxy.freeze();
    const pulled = worker.pull(ref(1)).catch((error: unknown) => error);
    clock.advance(2_500_000);
    expect(await pulled).toMatchObject({ code: 'DEADLINE_EXCEEDED', reason: 'pull_timeout' });
    proxy.thaw();
    expect(await worker.pull(ref(1))).toEqual([]);
    expect(reports.asked).toBe(2);
  });

  test('a pull from a gateway that is gone, or was never there, fails', async () => {
    const clock = new FakeClock();
    const worker = await joined(clock);
    proxy.freeze();
    const pulled = worker.pull(ref(1)).catch((error: unknown) => error);
    proxy.refuse(true);
    proxy.cut();
    const stranger = worker.pull({ gateway: 'ffffffffffffffff', number: 1 }).catch((error: unknown) => error);
    await until('both are told', () => {
      clock.advance(100_000);
      return worker.gateways.length === 0;
    });
    expect(await pulled).toMatchObject({ code: 'UNAVAILABLE', reason: 'pull_failed' });
    clock.advance(2_000_000);
    expect(await stranger).toMatchObject({ code: 'UNAVAILABLE', reason: 'pull_failed' });
  });

  test('tensors that the worker may not hold fail their pull alone', async () => {
    const worker = await joined(systemClock, { receiveLimitBytes: 100_000 });
    reports.tensors.set(1, [{ name: 'IN', datatype: 'UINT8', shape: [200_000], data: new Uint8Array(200_000) }]);
    reports.tensors.set(2, []);
    await expect(worker.pull(ref(1))).rejects.toMatchObject({ code: 'UNAVAILABLE', reason: 'pull_failed' });
    expect(await worker.pull(ref(2))).toEqual([]);
  });

  test('a reply that the gateway may not hold, or the worker cannot keep, is answered by an error', async () => {
    const worker = await joined(systemClock, { outboxLimitBytes: 500_000 }, { receiveLimitBytes: 200_000 });
    worker.send(ref(1), frame(300_000));
    worker.send(ref(2), frame(300_000));
    worker.send(ref(3), frame(600));
    await until('all are answered', () => reports.frames.length === 3);
    const answers = new Map(reports.frames.map(([number, each]) => [number, each.ok ? 'ok' : each.error.reason]));
    expect([...answers].sort()).toEqual([
      [1, 'reply_too_large'],
      [2, 'reply_buffer_full'],
      [3, 'ok'],
    ]);
  });

  test('a gateway that paused and was no member meanwhile still gets its replies, for a minute', async () => {
    const clock = new FakeClock();
    const worker = await joined(clock);
    proxy.freeze();
    worker.send(ref(1), frame(10));
    worker.setMembers([]);
    for (let second = 0; second < 30; second++) clock.advance(1_000_000);
    expect(worker.gateways).toEqual([]);
    proxy.cut();
    proxy.thaw();
    worker.setMembers([member]);
    await until('it is there', () => {
      clock.advance(100_000);
      return reports.frames.length === 1;
    });
    worker.setMembers([]);
    clock.advance(60_000_000);
    await until('it is left', () => gateway.workers.length === 0);
  });

  test('what waits for a gateway that never comes is dropped after five seconds', async () => {
    const clock = new FakeClock();
    const worker = await joined(clock);
    worker.send({ gateway: 'ffffffffffffffff', number: 1 }, frame(10));
    clock.advance(5_000_000);
    expect(problems.filter((problem) => problem.includes('dropped'))).toEqual([
      '1 messages for gateway ffffffffffffffff dropped: no such member for 5000 ms',
    ]);
  });

  test('a routing of 1,000 models passes', async () => {
    await joined(systemClock);
    const { routingOf, servedModel } = await import('../testing/routings.js');
    const atScheduler = new SchedulerReports();
    const scheduler = createSchedulerLinks({ clock: systemClock, id: 'cccccccccccccccc', secret: SECRET }, atScheduler);
    scheduler.setMembers([member]);
    await until('it is connected', () => scheduler.gateways.length === 1);
    const routing = routingOf(
      Array.from({ length: 1000 }, (_, i) => servedModel(`model-${i}`, '1', 20)),
      { number: 1, owner: 'cccccccccccccccc' },
    );
    scheduler.tell(A, { kind: 'routing', routing });
    scheduler.tell(A, { kind: 'control-result', id: 1, error: undefined });
    await until('both are there', () => reports.told.length === 2);
    expect(reports.told.map(([, message]) => message)).toEqual([
      { kind: 'routing', routing },
      { kind: 'control-result', id: 1, error: undefined },
    ]);
    await scheduler.close();
  });

  test('an error keeps its code, reason and hints', async () => {
    const worker = await joined(systemClock);
    worker.send(ref(1), {
      ok: false,
      final: true,
      error: new ServingError('INVALID_ARGUMENT', 'ünïcode', { reason: 'r', httpStatus: 413 }),
    });
    await until('it is there', () => reports.frames.length === 1);
    expect(reports.frames[0]![1]).toMatchObject({ error: { code: 'INVALID_ARGUMENT', message: 'ünïcode', reason: 'r', httpStatus: 413 } });
  });
});
