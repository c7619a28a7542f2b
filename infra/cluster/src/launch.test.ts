/** The launcher as a process, over real processes that stand for the programs, and a real Redis. */
import { connect } from 'node:net';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { isRunning, Launched, until } from './testing/launched.js';

jest.setTimeout(30_000);

let launched: Launched;
afterEach(() => launched.end());

function redisCommand(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`));
    socket.once('data', (data) => (socket.destroy(), resolve(data.toString())));
    socket.once('error', reject);
  });
}

describe('the start', () => {
  test('every process gets the flags, its own ports and one secret; the state file says what runs where', async () => {
    launched = await new Launched(['--gateways', '2', '--schedulers=1', '--workers=3', '--id', 'two words']).ready();
    const { redis, gateways, schedulers, workers } = launched.state;
    expect([gateways.length, schedulers.length, workers.length]).toEqual([2, 1, 3]);
    expect(new Set(launched.pids).size).toBe(7);
    expect(launched.pids.every(isRunning)).toBe(true);
    expect(await redisCommand(redis.port, 'CONFIG GET save')).toContain('save\r\n$0\r\n');
    const ports = gateways.flatMap(({ http, grpc, metrics }) => [http, grpc, metrics]);
    expect(new Set([...ports, ...schedulers.map((s) => s.metrics), ...workers.map((w) => w.metrics)]).size).toBe(10);

    const started = launched
      .events()
      .map(({ event }) => JSON.parse(event.replace('started ', '')) as { args: string[]; secret: string; launcher?: string });
    expect(new Set(started.map(({ secret }) => secret)).size).toBe(1);
    expect(started[0]?.secret.length).toBeGreaterThan(40);
    for (const { args, launcher } of started) {
      expect(args).toEqual(expect.arrayContaining(['--id', 'two words', `--redis-url=redis://127.0.0.1:${redis.port}`]));
      expect(args).toContain('--model-repository=/examples');
      expect(args.join(' ')).not.toMatch(/--(gateways|schedulers|workers|state-file)/);
      expect(launcher).toBeUndefined();
    }
    const links = started.map(({ args }) => args.find((arg) => arg.startsWith('--link-port=')));
    expect(new Set(links).size).toBe(6);
    expect(launched.stdout).toContain('2 gateways, 1 scheduler, 3 workers');
    expect(launched.stdout).toMatch(/curl -s http:\S+\/v2\/models\/digits\/infer -d @\S*examples\/digits\/samples\/seven.json/);
    expect(launched.stdout).toContain(`gateway-2  http://127.0.0.1:${gateways[1]?.http}`);
    await until('output has names', () => /^gateway-1 {3}\| serving /m.test(launched.stdout));
  });

  test('a process that ends before everything runs ends the rest, and is named', async () => {
    launched = new Launched([], { FAKE_FAILS: 'worker' });
    expect(await launched.exited).toEqual({ code: 1, signal: null });
    expect(launched.stderr).toMatch(/worker-\d ended with exit code 3: the cluster cannot start/);
    expect(launched.stderr).toContain('| cannot do that');
    expect(launched.events().map(({ pid }) => pid).filter(isRunning)).toEqual([]); // prettier-ignore
    expect(launched.leftovers()).toEqual([]);
  });

  test('what does not serve is named, and a signal still ends everything', async () => {
    launched = new Launched(['--workers=1'], { FAKE_MUTE: 'worker' });
    await until('it is named', () => launched.stderr.includes('cluster: still waiting for worker-1\n'));
    const { pids } = launched;
    launched.child.kill('SIGTERM');
    expect(await launched.exited).toEqual({ code: 0, signal: null });
    expect(launched.stdout).not.toContain('ready');
    expect(pids.filter(isRunning)).toEqual([]);
  });

  test('says what is wrong with the flags, all at once, and starts nothing', async () => {
    launched = new Launched(['--gateways=0', '--worker=3', '--http-timeout=soon', '--link-port=1']);
    expect((await launched.exited).code).toBe(1);
    expect(launched.stderr.trim().split('\n')).toEqual([
      "cluster: --gateways: expected a whole number from 1 to 64, found '0'",
      'cluster: --link-port cannot be chosen here: each process gets one of its own',
      expect.stringContaining('unknown flag --worker'),
      expect.stringContaining('--http-timeout'),
    ]);
    expect(launched.leftovers()).toEqual([]);
  });

  test('says what to do where there is no redis-server', async () => {
    launched = new Launched([], { PATH: '/nowhere' });
    expect((await launched.exited).code).toBe(1);
    expect(launched.stderr).toMatch(/redis-server was not found\..*\n.*--redis-url/);
  });

  test('says that the model repository is missing', async () => {
    launched = new Launched(['--model-repository=/nowhere/models']);
    expect((await launched.exited).code).toBe(1);
    expect(launched.stderr).toBe('cluster: --model-repository=/nowhere/models: there is no folder that can be read\n');
    expect(launched.leftovers()).toEqual([]);
  });

  test('uses the Redis it is given', async () => {
    launched = await new Launched(['--redis-url=redis://127.0.0.1:7777/0', '--gateways=1']).ready();
    expect(launched.state.redis).toEqual({ pid: null, port: 7777 });
  });
});

describe('a process that dies', () => {
  test.each(['gateway', 'scheduler', 'worker'] as const)('%s: is started again a second later with the same ports', async (role) => {
    launched = await new Launched().ready();
    const before = launched.state;
    const [victim] = before[`${role}s`];
    process.kill(victim!.pid, 'SIGKILL');
    const diedMs = performance.now();
    await until('it has another id', () => launched.state[`${role}s`][0]!.pid !== victim!.pid);
    const tookMs = performance.now() - diedMs;
    expect(tookMs).toBeGreaterThan(950);
    expect(tookMs).toBeLessThan(3000);
    const [after, ...others] = launched.state[`${role}s`];
    expect({ ...after, pid: 0 }).toEqual({ ...victim, pid: 0 });
    expect(others).toEqual(before[`${role}s`].slice(1));
    const args = (pid: number) => launched.events().find((e) => e.pid === pid)!.event;
    await until('it has started', () => launched.events().some(({ pid }) => pid === after!.pid));
    expect(args(after!.pid)).toBe(args(victim!.pid));
    expect(launched.stderr).toContain(`${role}-1 was ended by SIGKILL and is started again`);
  });

  test('Redis comes back empty on its port', async () => {
    launched = await new Launched().ready();
    const { pid, port } = launched.state.redis;
    await redisCommand(port, 'SET a 1');
    process.kill(pid!, 'SIGKILL');
    await until('it has another id', () => launched.state.redis.pid !== pid);
    let answer = '';
    while (answer === '') answer = await redisCommand(port, 'GET a').catch(() => '');
    expect(answer).toBe('$-1\r\n');
  });

  test('one that was told to end, even before everything runs, is started again', async () => {
    launched = new Launched(['--gateways=1', '--schedulers=1', '--workers=1'], { FAKE_MUTE: 'gateway' });
    await until('the worker runs', () => launched.leftovers().includes('state.json') && launched.events().some((e) => e.role === 'worker'));
    const { pid } = launched.state.workers[0]!;
    process.kill(pid, 'SIGTERM');
    await until('it has another id', () => launched.state.workers[0]!.pid !== pid);
    expect(launched.stderr).toContain('worker-1 ended with exit code 0 and is started again');
  });

  test('again and again', async () => {
    launched = await new Launched(['--workers=1']).ready();
    for (let i = 0; i < 2; i++) {
      const [{ pid } = { pid: 0 }] = launched.state.workers;
      process.kill(pid, 'SIGKILL');
      await until('it has another id', () => launched.state.workers[0]!.pid !== pid);
    }
    expect(launched.pids.every(isRunning)).toBe(true);
  });
});

describe('the end', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s drains gateways, then schedulers, then workers, and leaves nothing',
    async (signal) => {
      launched = await new Launched([], { FAKE_DRAIN_MS: '100' }).ready();
      const { pids } = launched;
      // To the whole group, as a terminal does: the processes must not get it by themselves.
      process.kill(-launched.child.pid!, signal);
      expect(await launched.exited).toEqual({ code: 0, signal: null });
      const events = launched.events().filter(({ event }) => !event.startsWith('started'));
      const order = events.map(({ role, event }) => `${role} ${event}`);
      expect(order).toEqual(
        ['gateway', 'scheduler', 'worker'].flatMap((role) => [
          ...Array<string>(2).fill(`${role} SIGTERM`),
          ...Array<string>(2).fill(`${role} drained`),
        ]),
      );
      expect(pids.filter(isRunning)).toEqual([]);
      expect(launched.leftovers()).toEqual([]);
    },
  );

  test('a process that was stopped or has just died does not hold it up', async () => {
    launched = await new Launched().ready();
    const { pids, state } = launched;
    process.kill(state.workers[0]!.pid, 'SIGSTOP');
    process.kill(state.gateways[0]!.pid, 'SIGKILL');
    await until('its death is known', () => launched.stderr.includes('gateway-1 was ended'));
    launched.child.kill('SIGTERM');
    expect(await launched.exited).toEqual({ code: 0, signal: null });
    expect(pids.filter(isRunning)).toEqual([]);
  });

  test('a second signal ends everything at once', async () => {
    launched = await new Launched([], { FAKE_DRAIN_MS: '60000' }).ready();
    const { pids } = launched;
    launched.child.kill('SIGINT');
    await until('it drains', () => launched.events().some(({ event }) => event === 'SIGTERM'));
    const firstMs = performance.now();
    // Within a second it would be the same key press.
    await until('a second has passed', () => performance.now() - firstMs > 1100);
    launched.child.kill('SIGTERM');
    expect(await launched.exited).toEqual({ code: 143, signal: null });
    expect(pids.filter(isRunning)).toEqual([]);
    expect(launched.leftovers()).toEqual([]);
  });

  test('a drain without end is cut short', async () => {
    const flags = ['--exit-timeout-secs=0', '--lame-duck-ms=0', '--gateways=1', '--schedulers=1', '--workers=1'];
    launched = await new Launched(flags, { FAKE_DRAIN_MS: '60000' }).ready();
    const { gateways } = launched.state;
    const { pids } = launched;
    process.kill(gateways[0]!.pid, 'SIGSTOP');
    launched.child.kill('SIGTERM');
    await until('the gateway is ended', () => launched.stderr.includes('gateway-1 did not finish in time and is ended'));
    launched.child.kill('SIGTERM');
    expect((await launched.exited).code).toBe(143);
    expect(pids.filter(isRunning)).toEqual([]);
  });

  test('the launcher is killed: everything drains and goes, its files too', async () => {
    launched = await new Launched([], { FAKE_DRAIN_MS: '100' }).ready();
    const { pids, state } = launched;
    process.kill(state.workers[1]!.pid, 'SIGSTOP');
    launched.child.kill('SIGKILL');
    await until('no process is left', () => !pids.some(isRunning));
    await until('no file is left', () => launched.leftovers().length === 0);
    expect(launched.events().filter(({ event }) => event === 'drained')).toHaveLength(6);
  });
});
