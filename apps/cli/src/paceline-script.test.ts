import { execFile } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

const SCRIPT = fileURLToPath(new URL('../bin/paceline', import.meta.url));

interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(command: string, args: string[], env: NodeJS.ProcessEnv = process.env): Promise<Finished> {
  return new Promise((resolve) => {
    execFile(command, args, { env }, (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr }));
  });
}

/** A checkout with the script and two mains that say who they are. */
describe('bin/paceline', () => {
  let root: string;
  let script: string;

  beforeEach(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), 'paceline cli ')));
    script = put('apps/cli/bin/paceline');
    copyFileSync(SCRIPT, script);
    for (const app of ['cli', 'server']) {
      writeFileSync(put(`apps/${app}/dist/main.js`), `console.log(JSON.stringify(['${app}', process.pid, ...process.argv.slice(2)]))`);
    }
    writeFileSync(put('apps/server/node.flags'), '--max-semi-space-size=16\n');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  function put(path: string): string {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    return file;
  }

  test('serve becomes the server and keeps the words of the flags', async () => {
    const { stdout } = await run(script, ['serve', '--id', 'two words', '--x=']);
    expect(JSON.parse(stdout)).toEqual(['server', expect.any(Number), '--id', 'two words', '--x=']);
  });

  test('check asks the server, whose judges it needs', async () => {
    const main = put('apps/server/dist/check/check.main.js');
    writeFileSync(main, "console.log(JSON.stringify(['check', ...process.argv.slice(2)]))");
    expect(JSON.parse((await run(script, ['check', 'a b', '--json'])).stdout)).toEqual(['check', 'a b', '--json']);
  });

  test('no process stays between caller and server', async () => {
    const { stdout } = await run('/bin/sh', ['-c', 'echo $$; exec "$0" serve', script]);
    const [shell, server] = stdout.trim().split('\n');
    expect(JSON.parse(server ?? '')).toEqual(['server', Number(shell)]);
  });

  test('everything else goes to the command line app', async () => {
    expect(JSON.parse((await run(script, ['version', 'serve'])).stdout)).toEqual(['cli', expect.any(Number), 'version', 'serve']);
    expect(JSON.parse((await run(script, [])).stdout)).toEqual(['cli', expect.any(Number)]);
  });

  test('works through symbolic links, relative ones too', async () => {
    const link = put('node_modules/.bin/paceline');
    symlinkSync('../../apps/cli/bin/paceline', link);
    symlinkSync(link, join(root, 'second'));
    expect((await run(join(root, 'second'), ['serve'])).stdout).toContain('"server"');
  });

  test('says what to do when nothing is built', async () => {
    rmSync(join(root, 'apps/server/dist'), { recursive: true });
    const { code, stderr } = await run(script, ['serve']);
    expect(code).toBe(1);
    expect(stderr).toContain("run 'npm start'");
  });

  test.each([
    ['v24.8.0', 'bundled'],
    ['v20.20.2', 'bundled'],
    ['v24.9.0', 'own'],
    ['v26.0.0', 'own'],
  ])('own Node %s: takes the %s one', async (version, expected) => {
    const bundled = put(`node_modules/node-linux-${process.arch}/bin/node`);
    writeFileSync(bundled, '#!/bin/sh\necho bundled\n');
    const own = put('bin/node');
    writeFileSync(own, `#!/bin/sh\n[ "$1" = --version ] && echo ${version} || echo own\n`);
    for (const file of [bundled, own]) chmodSync(file, 0o755);
    const { stdout } = await run(script, ['serve'], { PATH: `${dirname(own)}:/usr/bin:/bin` });
    expect(stdout.trim()).toBe(process.platform === 'linux' ? expected : 'own');
  });

  test('an old Node and none installed is a clear message', async () => {
    const own = put('bin/node');
    writeFileSync(own, '#!/bin/sh\necho v20.1.0\n');
    chmodSync(own, 0o755);
    const { code, stderr } = await run(script, ['serve'], { PATH: `${dirname(own)}:/usr/bin:/bin` });
    expect([code, stderr]).toEqual([1, expect.stringContaining('Node 24.9 or newer is needed; found 20.1.0')]);
  });
});
