/**
 * docker-compose.yml brought up for real: every container healthy, without root and on a read-only file system; the same
 * calls answered with the same bytes as by the image of the whole server; each process scraped; nothing lost when a worker
 * goes. Takes minutes: it is part of `npm run test:full` alone, and skipped with the reason where there is no Docker.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePort } from '@paceline/testkit';
import { Compose, findDocker, ROOT, run, until, type Environment } from './docker.js';

const MINUTE_MS = 60_000;
const SERVICES = ['redis', 'gateway-1', 'gateway-2', 'scheduler', 'worker', 'prometheus'];
const APPS = ['gateway-1', 'gateway-2', 'scheduler', 'worker'];
/** Example models that consist of their own files. */
const MODELS = ['digits', 'breast_cancer'];

interface Call {
  readonly model: string;
  readonly body: string;
}

function call(model: string, name: string, shape: readonly number[], seed: number): Call {
  const count = shape.reduce((product, n) => product * n, 1);
  const data = Array.from({ length: count }, (_, i) => ((i * 7 + seed * 13) % 17) / 2);
  return { model, body: JSON.stringify({ id: `${model}-${seed}`, inputs: [{ name, shape, datatype: 'FP32', data }] }) };
}

async function ask(port: number, { model, body }: Call): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/infer`, { method: 'POST', body });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${model}: ${answer.status} ${text}`);
  return text;
}

async function inputOf(port: number, model: string): Promise<{ name: string; shape: number[] }> {
  const metadata = (await (await fetch(`http://127.0.0.1:${port}/v2/models/${model}`)).json()) as {
    inputs: { name: string; shape: number[] }[];
  };
  return metadata.inputs[0]!;
}

const found = await findDocker();
if (typeof found === 'string') process.stderr.write(`images are not tested: ${found}\n`);

(typeof found === 'string' ? describe.skip : describe)('docker-compose.yml', () => {
  let env: Environment;
  let project: Compose;
  let models: string;
  let gateways: number[];
  let prometheus: number;
  let embedded: number;
  const single = `paceline-single-${process.pid}`;

  beforeAll(async () => {
    models = mkdtempSync(join(tmpdir(), 'paceline-models-'));
    for (const model of MODELS)
      cpSync(join(ROOT, 'apps/server/example-models', model), join(models, model), { recursive: true, dereference: true });
    await run('chmod', ['-R', 'a+rX', models], process.env);
    const ports = await Promise.all(Array.from({ length: 6 }, () => freePort()));
    const [http1, grpc1, http2, grpc2, prometheusPort, embeddedPort] = ports as [number, number, number, number, number, number];
    gateways = [http1, http2];
    prometheus = prometheusPort;
    embedded = embeddedPort;
    env = {
      ...(found as Environment),
      MODELS: models,
      HTTP_PORT: String(http1),
      GRPC_PORT: String(grpc1),
      HTTP_PORT_2: String(http2),
      GRPC_PORT_2: String(grpc2),
      PROMETHEUS_PORT: String(prometheusPort),
    };
    project = new Compose(env, `paceline-test-${process.pid}`);
    const image = env['NODE_IMAGE'] === undefined ? [] : ['--build-arg', `NODE_IMAGE=${env['NODE_IMAGE']}`];
    await project.docker(
      'build',
      '--quiet',
      ...image,
      '--file',
      'infra/images/Dockerfile',
      '--target',
      'server',
      '--tag',
      'paceline/server',
      '.',
    );
    await project.compose('build');
    await project.docker(
      ...['run', '--detach', '--name', single, '--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL'],
      ...['--publish', `127.0.0.1:${embedded}:8000`, '--volume', `${models}:/models:ro`, 'paceline/server'],
    );
    await project.compose('up', '--detach', '--no-build', ...SERVICES);
  }, 20 * MINUTE_MS);

  afterAll(async () => {
    await project.compose('down', '--volumes', '--timeout', '20').catch(() => '');
    await project.docker('rm', '--force', single).catch(() => '');
    rmSync(models, { recursive: true });
  }, 3 * MINUTE_MS);

  it(
    'becomes healthy, every container of it',
    async () => {
      for (const service of APPS) {
        await until(`${service} healthy`, 3 * MINUTE_MS, async () => {
          const ids = await project.containers(service);
          if (ids.length !== (service.startsWith('gateway') ? 1 : 2)) throw new Error(`${ids.length} containers of ${service}`);
          const states = await project.docker('inspect', '--format', '{{.State.Health.Status}}', ...ids);
          if (
            states
              .trim()
              .split('\n')
              .every((state) => state === 'healthy')
          )
            return true;
          throw new Error(`${service}: ${states}\n${await project.compose('logs', '--tail', '5', service)}`);
        });
      }
    },
    10 * MINUTE_MS,
  );

  it(
    'runs without root, writes nothing outside /tmp',
    async () => {
      for (const service of APPS) {
        for (const id of await project.containers(service)) {
          expect((await project.docker('exec', id, 'id', '-u')).trim()).toBe('1000');
          await expect(project.docker('exec', id, 'sh', '-c', 'echo x > /app/x')).rejects.toThrow('Read-only file system');
        }
      }
    },
    MINUTE_MS,
  );

  it(
    'answers as the image of the whole server does, byte for byte, on each gateway',
    async () => {
      for (const model of MODELS) {
        const { name, shape } = await inputOf(embedded, model);
        for (let seed = 0; seed < 20; seed++) {
          const asked = call(model, name, [1 + (seed % 3), ...shape.slice(1)], seed);
          const expected = await ask(embedded, asked);
          for (const port of gateways) expect(await ask(port, asked)).toBe(expected);
        }
      }
    },
    MINUTE_MS,
  );

  it(
    'is watched: each process is scraped, and every metric of the dashboard exists',
    async () => {
      const api = async (path: string): Promise<unknown> =>
        ((await (await fetch(`http://127.0.0.1:${prometheus}/api/v1/${path}`)).json()) as { data: unknown }).data;
      await until('six targets up', 2 * MINUTE_MS, async () => {
        const { activeTargets } = (await api('targets')) as { activeTargets: { health: string; scrapeUrl: string; lastError: string }[] };
        if (activeTargets.length === 6 && activeTargets.every(({ health }) => health === 'up')) return true;
        throw new Error(JSON.stringify(activeTargets.map(({ scrapeUrl, health, lastError }) => [scrapeUrl, health, lastError])));
      });
      // What has no value yet has its type already.
      const scraped = await Promise.all(
        APPS.map(async (service) => {
          const [id] = await project.containers(service);
          const script = "fetch('http://127.0.0.1:8002/metrics').then((r) => r.text()).then(console.log)";
          return project.docker('exec', id!, 'node', '-e', script);
        }),
      );
      const exposed = new Set([...scraped.join('\n').matchAll(/^# TYPE (\S+)/gm)].map(([, metric]) => metric!));
      const dashboard = readFileSync(join(ROOT, 'infra/monitoring/grafana/dashboards/paceline.json'), 'utf8');
      const named = new Set(
        [...dashboard.matchAll(/\b(?:nv|paceline|process|nodejs)_[a-z0-9_]+/g)].map(([metric]) => metric.replace(/_bucket$/, '')),
      );
      expect([...named].filter((metric) => !exposed.has(metric))).toEqual([]);
    },
    4 * MINUTE_MS,
  );

  it(
    'loses nothing when a worker is told to go, which ends well',
    async () => {
      const { name, shape } = await inputOf(gateways[0]!, 'digits');
      const [id] = await project.containers('worker');
      let going = true;
      let answered = 0;
      const clients = gateways.flatMap((port) =>
        Array.from({ length: 4 }, async (_, client) => {
          for (let i = 0; going; i++) {
            await ask(port, call('digits', name, [1, ...shape.slice(1)], 100 * client + i));
            answered += 1;
          }
        }),
      );
      await project.docker('stop', id!);
      going = false;
      await Promise.all(clients);
      expect(answered).toBeGreaterThan(0);
      expect((await project.docker('inspect', '--format', '{{.State.ExitCode}}', id!)).trim()).toBe('0');
      await project.docker('start', id!);
    },
    2 * MINUTE_MS,
  );

  it(
    'leaves in Redis what belongs there alone',
    async () => {
      const [id] = await project.containers('redis');
      const keys = (await project.docker('exec', id!, 'redis-cli', '--scan')).trim().split('\n');
      expect(keys.filter((key) => !/^\{paceline(:[^}]*)?\}/.test(key))).toEqual([]);
      for (const key of keys.filter((each) => each.endsWith(':in'))) {
        expect(Number(await project.docker('exec', id!, 'redis-cli', 'xlen', key))).toBeLessThanOrEqual(1);
      }
    },
    MINUTE_MS,
  );
});
