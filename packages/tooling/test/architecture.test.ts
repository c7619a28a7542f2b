/** The canary of the architecture check: each rule is broken once on purpose and has to notice. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const TOOLING = fileURLToPath(new URL('..', import.meta.url));
const CRUISER = join(TOOLING, 'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs');
const CONFIG = join(TOOLING, 'dependency-cruiser/config.mjs');

/** from → to, and the rule that forbids it. */
const PLANTED: readonly (readonly [from: string, to: string, rule: string])[] = [
  ['packages/clock/src/bad.ts', 'packages/tensor/src/index.ts', 'packages-clock'],
  ['packages/tensor/src/bad.ts', 'packages/protocol/src/index.ts', 'packages-tensor'],
  ['packages/protocol/src/bad.ts', 'packages/core/src/index.ts', 'packages-protocol'],
  ['packages/core/src/bad.ts', 'packages/streams/src/index.ts', 'packages-core'],
  ['packages/core/src/clock.ts', 'packages/clock/src/index.ts', 'packages-core'],
  ['packages/core/src/app.ts', 'apps/gateway/src/index.ts', 'packages-core'],
  ['packages/link/src/bad.ts', 'packages/redis/src/index.ts', 'packages-link'],
  ['packages/redis/src/bad.ts', 'packages/link/src/index.ts', 'packages-redis'],
  ['packages/cluster-state/src/bad.ts', 'packages/streams/src/index.ts', 'packages-cluster-state'],
  ['packages/nest-kit/src/bad.ts', 'packages/core/src/index.ts', 'packages-nest-kit'],
  ['packages/streams/src/bad.ts', 'packages/core/src/index.ts', 'packages-streams'],
  ['packages/worker-rpc/src/bad.ts', 'packages/core/src/index.ts', 'packages-worker-rpc'],
  ['packages/model-repository/src/bad.ts', 'packages/core/src/index.ts', 'packages-model-repository'],
  ['packages/config/src/bad.ts', 'packages/telemetry/src/index.ts', 'packages-config'],
  ['packages/telemetry/src/bad.ts', 'packages/core/src/index.ts', 'packages-telemetry'],
  ['packages/testkit/src/bad.ts', 'packages/core/src/index.ts', 'packages-testkit'],
  ['packages/novelty/src/bad.ts', 'packages/tensor/src/index.ts', 'no-new-package-without-a-place'],
  ['apps/gateway/src/bad.ts', 'apps/scheduler/src/index.ts', 'apps-never-import-each-other'],
  ['apps/server/src/bad.ts', 'apps/cli/src/index.ts', 'server-joins-its-parts-only'],
  ['apps/cli/src/bad.ts', 'packages/core/src/index.ts', 'apps-cli'],
  ['apps/e2e/src/bad.ts', 'packages/streams/src/index.ts', 'apps-e2e'],
  ['packages/telemetry/src/nest.ts', '@nestjs/common', 'nest-only-in-apps'],
  ['packages/core/src/files.ts', 'node:fs', 'pure-packages-do-no-io'],
  ['packages/tensor/src/library.ts', 'lodash', 'pure-packages-have-no-libraries'],
  ['apps/gateway/src/kit.ts', 'packages/testkit/src/index.ts', 'test-tools-only-in-tests'],
  ['apps/gateway/src/fake.ts', 'packages/clock/src/testing/index.ts', 'test-tools-only-in-tests'],
  ['packages/streams/src/cycle-a.ts', 'packages/streams/src/cycle-b.ts', 'no-cycles'],
  ['apps/gateway/src/undeclared.ts', 'undici', 'declared-dependencies-only'],
  ['apps/gateway/src/missing.ts', 'apps/gateway/src/nowhere.ts', 'resolvable'],
];

/** Imports that the architecture allows. */
const GOOD: readonly (readonly [from: string, to: string])[] = [
  ['packages/core/src/good.ts', 'packages/protocol/src/index.ts'],
  ['packages/core/src/good.test.ts', 'packages/testkit/src/index.ts'],
  ['packages/streams/src/good.ts', 'packages/clock/src/index.ts'],
  ['packages/streams/src/testing/contract.ts', '@jest/globals'],
  ['apps/gateway/src/good.ts', '@nestjs/common'],
  ['packages/nest-kit/src/good.ts', '@nestjs/common'],
  ['apps/gateway/src/core.ts', 'packages/core/src/index.ts'],
  ['apps/server/src/good.ts', 'apps/gateway/src/index.ts'],
  ['apps/cli/src/good.ts', 'packages/config/src/index.ts'],
  ['apps/e2e/src/good.ts', 'packages/testkit/src/index.ts'],
];

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
}

let root: string;
let violations: readonly Violation[];

function put(path: string, text: string): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function plant(from: string, to: string): void {
  const isFile = /^(apps|packages)\//.test(to);
  const target = isFile ? relative(dirname(from), to) : to;
  put(from, `import * as planted from '${target.startsWith('.') || !isFile ? target : `./${target}`}';\nexport const value = planted;\n`);
}

beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'paceline-architecture-')));
  put('package.json', '{}');
  for (const name of ['@nestjs/common', '@jest/globals', 'lodash', 'undici']) {
    put(`node_modules/${name}/package.json`, JSON.stringify({ name, main: 'index.js' }));
    put(`node_modules/${name}/index.js`, '');
  }
  put('packages/telemetry/package.json', JSON.stringify({ dependencies: { '@nestjs/common': '1' } }));
  put('packages/nest-kit/package.json', JSON.stringify({ dependencies: { '@nestjs/common': '1' } }));
  put('packages/streams/package.json', JSON.stringify({ devDependencies: { '@jest/globals': '1' } }));
  put('apps/gateway/package.json', JSON.stringify({ dependencies: { '@nestjs/common': '1' }, devDependencies: { undici: '1' } }));
  for (const [from, to] of [...PLANTED, ...GOOD]) {
    plant(from, to);
    if (/index\.ts$/.test(to)) put(to, 'export {};\n');
  }
  // The other half of the cycle, which is reported once, at its first file.
  plant('packages/streams/src/cycle-b.ts', 'packages/streams/src/cycle-a.ts');
  const json = await new Promise<string>((resolve, reject) => {
    const args = [CRUISER, '--config', CONFIG, '--output-type', 'json', 'apps', 'packages'];
    execFile(process.execPath, args, { cwd: root, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      stdout.startsWith('{') ? resolve(stdout) : reject(new Error(`dependency-cruiser: ${error?.message}\n${stderr}\n${stdout}`)),
    );
  });
  violations = (JSON.parse(json) as { summary: { violations: Violation[] } }).summary.violations;
}, 60_000);

afterAll(() => rmSync(root, { recursive: true, force: true }));

test.each(PLANTED)('%s → %s breaks %s', (from, _to, rule) => {
  expect(violations.filter((violation) => violation.from === from).map((violation) => violation.rule.name)).toContain(rule);
});

test.each(GOOD)('%s → %s is allowed', (from) => {
  expect(violations.filter((violation) => violation.from === from)).toEqual([]);
});

test('every rule of the configuration has been broken here', async () => {
  const { default: config } = (await import(CONFIG)) as { default: { forbidden: { name: string }[] } };
  const broken = new Set(PLANTED.map(([, , rule]) => rule));
  expect(config.forbidden.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});
