import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Checkout, type Launched } from './support/checkout.js';

jest.setTimeout(20_000);

let checkout: Checkout;
beforeEach(() => {
  checkout = new Checkout();
});
afterEach(() => rmSync(checkout.root, { recursive: true, force: true }));

const SET_UP = ['pnpm install --frozen-lockfile', 'turbo run build', 'link'];

function pid({ child }: Launched): number {
  if (child.pid === undefined) throw new Error('the process was not started');
  return child.pid;
}

/** Starts, ends with SIGTERM, and says what was called on the way. */
async function callsOfOneRun(): Promise<string[]> {
  const launched = await checkout.serving();
  process.kill(pid(launched), 'SIGTERM');
  expect((await launched.ended).code).toBe(0);
  return checkout.calls();
}

describe('set-up', () => {
  test('the first start installs, builds and links; the server gets the flags and standard output', async () => {
    const launched = await checkout.serving(['--id', 'two words', '--x=']);
    expect(launched.stdout()).toBe('serving --id two words --x=\n');
    expect(checkout.calls()).toEqual(SET_UP);
    process.kill(pid(launched), 'SIGTERM');
    await launched.ended;
  });

  test('the server’s Node gets the flags that its file names, and no others', async () => {
    checkout.put('apps/server/node.flags', '--max-semi-space-size=16\n--trace-uncaught\n');
    const launched = await checkout.serving(['--report-node']);
    await launched.until('\nnode ');
    process.kill(pid(launched), 'SIGTERM');
    await launched.ended;
    expect(launched.stdout()).toMatch(/^serving --report-node\nnode --max-semi-space-size=16 --trace-uncaught --import \S+\n/);
  });

  test('a second start calls nothing', async () => {
    expect(await callsOfOneRun()).toEqual(SET_UP);
    expect(await callsOfOneRun()).toEqual([]);
  });

  test('what has changed is done again, and no more', async () => {
    await callsOfOneRun();
    checkout.put('apps/server/src/main.ts', 'export {};');
    expect(await callsOfOneRun()).toEqual(['turbo run build', 'link']);
    checkout.put('apps/server/src/new.ts', '');
    expect(await callsOfOneRun()).toEqual(['turbo run build', 'link']);
    checkout.put('apps/server/src/new.test.ts', '');
    expect(await callsOfOneRun()).toEqual([]);
    checkout.append('pnpm-lock.yaml', '#');
    expect(await callsOfOneRun()).toEqual(SET_UP);
    checkout.remove('apps/server/dist');
    expect(await callsOfOneRun()).toEqual(['turbo run build', 'link']);
  });

  test('a failed installation passes its exit code on, says what to do, and is tried again', async () => {
    checkout.put('install-fails', '');
    const failed = checkout.launch();
    expect((await failed.ended).code).toBe(9);
    expect(failed.stderr()).toContain('npm config set registry');
    expect(checkout.calls()).toEqual([SET_UP[0]]);
    checkout.remove('install-fails');
    expect(await callsOfOneRun()).toEqual(SET_UP);
  });

  test('two first starts at once set up once', async () => {
    const both = await Promise.all([checkout.serving(['--a']), checkout.serving(['--b'])]);
    expect(checkout.calls().filter((call) => call.startsWith('pnpm'))).toHaveLength(1);
    for (const launched of both) process.kill(pid(launched), 'SIGTERM');
    await Promise.all(both.map(({ ended }) => ended));
  });

  test('a lock left by a process that is gone is no obstacle', async () => {
    checkout.put('.paceline/set-up.lock', '4194305');
    expect(await callsOfOneRun()).toEqual(SET_UP);
  });

  test('a signal during the installation ends everything', async () => {
    checkout.put('install-hangs', '');
    const launched = checkout.launch();
    await launched.until('\ninstalling');
    process.kill(pid(launched), 'SIGINT');
    expect((await launched.ended).code).toBe(130);
    expect(launched.stdout()).toBe('');
    expect(checkout.calls()).toEqual([SET_UP[0]]);
  });
});

describe('npm run cluster', () => {
  test.each([false, true])('sets up like npm start, then runs the launcher of a cluster until a signal (npm: %s)', async (npm) => {
    const launched = checkout.launch(['--workers', '3'], { script: 'cluster', npm });
    await launched.until('cluster --workers 3\n');
    expect(checkout.calls()).toEqual(SET_UP);
    process.kill(pid(launched), 'SIGTERM');
    await launched.ended;
    expect(launched.stdout()).toMatch(/cluster --workers 3\nsignal SIGTERM\ndrained\n$/);
    await callsOfOneRun().then((calls) => expect(calls).toEqual([]));
  });
});

describe('the end', () => {
  const DRAINED_ONCE = /^serving.*\nsignal SIG(TERM|INT)\ndrained\n$/;

  test.each<[string, (launcher: number) => void]>([
    ['SIGTERM to the launcher', (launcher) => process.kill(launcher, 'SIGTERM')],
    ['SIGINT to the launcher', (launcher) => process.kill(launcher, 'SIGINT')],
    ['Ctrl-C', (launcher) => process.kill(-launcher, 'SIGINT')],
    ['Ctrl-C, then SIGTERM', (launcher) => (process.kill(-launcher, 'SIGINT'), process.kill(launcher, 'SIGTERM'))],
    ['the terminal closes', (launcher) => process.kill(-launcher, 'SIGHUP')],
  ])('%s: drains once, exit code of the server', async (_name, end) => {
    const launched = await checkout.serving([], { env: { EXIT_CODE: '5' } });
    end(pid(launched));
    expect((await launched.ended).code).toBe(5);
    expect(launched.stdout()).toMatch(DRAINED_ONCE);
  });

  test('the launcher is killed: the server drains all the same', async () => {
    const launched = await checkout.serving();
    process.kill(pid(launched), 'SIGKILL');
    expect((await launched.ended).signal).toBe('SIGKILL');
    expect(launched.stdout()).toMatch(DRAINED_ONCE);
  });

  test.each<[string, (npm: number) => void]>([
    ['SIGTERM to npm', (npm) => process.kill(npm, 'SIGTERM')],
    ['Ctrl-C at npm', (npm) => process.kill(-npm, 'SIGINT')],
    ['SIGKILL to npm', (npm) => process.kill(npm, 'SIGKILL')],
  ])('%s: drains once', async (_name, end) => {
    const launched = await checkout.serving([], { npm: true });
    end(pid(launched));
    await launched.ended;
    expect(launched.stdout().slice(launched.stdout().indexOf('serving'))).toMatch(DRAINED_ONCE);
  });

  test('the server’s own end is passed on', async () => {
    expect((await checkout.launch(['--fail']).ended).code).toBe(3);
    expect((await checkout.launch(['--crash']).ended).code).toBe(128 + 9);
  });
});
