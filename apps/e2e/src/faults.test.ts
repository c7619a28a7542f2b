/**
 * What breaks below a server: idle hosts that are killed or frozen, a request that hangs wherever it runs, no descriptors
 * left, no shared memory left, the server itself killed. Readiness tells the truth throughout, answers stay right.
 */
import { spawnSync } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { identityModel, scaleModel, slowModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { inferPath, post } from './support/http-text.js';
import { KeepAliveConnection } from './support/keep-alive.js';
import { descendants, instanceHosts, isAlive } from './support/process-tree.js';
import { ReadinessWatch } from './support/readiness.js';
import { startServer, type ServerProcess } from './support/server-process.js';
import { until } from './support/until.js';

const io = (kind: string, name: string, type: string, dims: number): string =>
  `${kind} { name: "${name}" data_type: TYPE_${type} dims: [ ${dims} ] }\n`;
/** One instance each, so that a host is a model. */
const ONE = 'instance_group { count: 1 kind: KIND_CPU }\n';
const scale = (name: string, factor: number) => ({
  name,
  config: `backend: "onnxruntime"\nmax_batch_size: 8\n${ONE}${io('input', 'INPUT0', 'FP32', 1)}${io('output', 'OUTPUT0', 'FP32', 1)}`,
  versions: { '1': scaleModel({ dims: [1], factor }) },
});
const MODELS = [
  scale('double', 2),
  scale('triple', 3),
  {
    name: 'wide',
    config: `backend: "onnxruntime"\nmax_batch_size: 8\n${ONE}${io('input', 'INPUT0', 'FP32', -1)}${io('output', 'OUTPUT0', 'FP32', -1)}`,
    versions: { '1': identityModel({ datatype: 'FP32', dims: [-1] }) },
  },
  {
    name: 'slow',
    config: `backend: "onnxruntime"
max_batch_size: 4
${ONE}${io('input', 'INPUT0', 'FP32', 1)}${io('input', 'ITERS', 'INT64', 1)}${io('output', 'OUTPUT0', 'FP32', 1)}
dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 500000 }`,
    versions: { '1': slowModel() },
  },
];
const READY_TRUE_WITHIN_MS = 2000;
const BACK_WITHIN_MS = 3000;
const FOR_EVER = 1_000_000_000;
/** Runs after which the watchdog has learned how long one takes. */
const LEARNED_AFTER_RUNS = 50;

let repository: TemporaryRepository;
let server: ServerProcess;
beforeAll(() => {
  repository = temporaryModelRepository(MODELS);
});
afterAll(() => repository.remove());
afterEach(async () => {
  await server.stop('SIGKILL');
});

const start = async (models: readonly string[], under: readonly string[] = []): Promise<void> => {
  const flags = [`--model-repository=${repository.root}`, '--model-control-mode=explicit', ...models.map((m) => `--load-model=${m}`)];
  server = await startServer(flags, {}, under);
};

interface Answer {
  readonly status: number;
  readonly error: string | undefined;
  readonly data: readonly number[] | undefined;
}

async function infer(
  model: string,
  inputs: readonly { readonly name: string; readonly datatype: string; readonly data: readonly number[] }[],
): Promise<Answer> {
  const body = JSON.stringify({ inputs: inputs.map((input) => ({ ...input, shape: [1, input.data.length] })) });
  const response = await fetch(`http://${server.http}/v2/models/${model}/infer`, { method: 'POST', body });
  const json = (await response.json()) as { error?: string; outputs?: { data: number[] }[] };
  return { status: response.status, error: json.error, data: json.outputs?.[0]?.data };
}
const scaled = (model: string, value: number) => infer(model, [{ name: 'INPUT0', datatype: 'FP32', data: [value] }]);
const slow = (value: number, iterations: number) =>
  infer('slow', [{ name: 'INPUT0', datatype: 'FP32', data: [value] }, { name: 'ITERS', datatype: 'INT64', data: [iterations] }]); // prettier-ignore

describe('readiness', () => {
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'tells the truth within 2 s when an idle host gets %s, and capacity comes back',
    async (signal) => {
      await start(['double', 'triple']);
      const watch = new ReadinessWatch(server.http, ['double', 'triple']);
      await watch.first('ready at first', watch.startedMs, 10_000, (look) => look.server);
      for (const victim of instanceHosts(server.child.pid!)) {
        process.kill(victim, signal);
        const sinceMs = performance.now();
        const down = await watch.first('the server says it is not ready', sinceMs, READY_TRUE_WITHIN_MS, (look) => !look.server);
        const lost = Object.keys(down.models).filter((model) => !down.models[model]);
        expect(lost).toHaveLength(1);
        // Requests of the meantime wait for the instance and get their answers.
        expect((await scaled(lost[0]!, 7)).data).toEqual([lost[0] === 'double' ? 14 : 21]);
        const up = await watch.first('it is ready again', down.atMs, BACK_WITHIN_MS, (look) => look.server);
        expect(isAlive(victim)).toBe(false);
        expect(up.atMs - sinceMs).toBeLessThan(READY_TRUE_WITHIN_MS + BACK_WITHIN_MS);
      }
      await watch.end();
      expect(watch.contradictions()).toEqual([]);
      expect(await scaled('double', 4)).toMatchObject({ status: 200, data: [8] });
      expect(await scaled('triple', 4)).toMatchObject({ status: 200, data: [12] });
    },
    60_000,
  );
});

describe('a request that hangs wherever it runs', () => {
  it('is the only one that gets an error, and the model goes on', async () => {
    await start(['slow']);
    while (
      LEARNED_AFTER_RUNS >
      Number(/^nv_inference_exec_count\{model="slow".*\} (\d+)/m.exec(await (await fetch(`http://${server.metrics}/metrics`)).text())?.[1])
    ) {
      await Promise.all([1, 2, 3, 4].map((value) => slow(value, 1)));
    }
    const answers = await Promise.all([slow(1, 1), slow(2, FOR_EVER), slow(3, 1), slow(4, 1)]);
    expect(answers.map(({ status, data }) => [status, data])).toEqual([[200, [1]], [504, undefined], [200, [3]], [200, [4]]]); // prettier-ignore
    expect(answers[1].error).toContain("'slow'");
    expect(answers[1].error).toContain('took longer than its limit');
    expect((await Promise.all([5, 6, 7, 8].map((value) => slow(value, 1)))).map(({ data }) => data)).toEqual([[5], [6], [7], [8]]);
  }, 60_000);
});

describe('out of file descriptors', () => {
  const LIMIT = 90;

  it('refuses what it cannot have, serves what it has, and recovers', async () => {
    await start(['double'], ['/bin/sh', '-c', `ulimit -n ${LIMIT}; exec "$0" "$@"`]);
    const port = Number(server.http.slice(server.http.lastIndexOf(':') + 1));
    const early = new KeepAliveConnection(port);
    const load = (model: string) => early.request(post(`/v2/repository/models/${model}/load`, Buffer.alloc(0)));
    const body = Buffer.from('{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[5]}]}');
    const inferEarly = async (model: string) => (await early.request(post(inferPath(model), body))).body.toString();
    expect(await inferEarly('double')).toContain('"data":[10.0]');
    const ended = new Set<Socket>();
    const sockets = Array.from({ length: 2 * LIMIT }, () => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.on('close', () => ended.add(socket));
      return socket;
    });
    await until('some connections are refused', 10_000, () => ended.size > 0);
    const refused = await load('triple');
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.body.toString()).toContain('EMFILE');
    expect(await inferEarly('double')).toContain('"data":[10.0]');
    for (const socket of sockets) socket.destroy();
    await until('the server has closed them', 10_000, () => sockets.every((socket) => ended.has(socket)));
    let status = 0;
    for (let attempt = 0; attempt < 50 && status !== 200; attempt++) status = (await load('triple')).status;
    expect(status).toBe(200);
    early.close();
    expect(await scaled('triple', 5)).toMatchObject({ status: 200, data: [15] });
  }, 60_000);
});

describe('shared memory that is full', () => {
  const UNDER = ['unshare', '--map-root-user', '--mount', '/bin/sh', '-c', 'mount -t tmpfs -o size=256k none /dev/shm && exec "$0" "$@"'];
  const possible = spawnSync(UNDER[0]!, [...UNDER.slice(1), 'true']).status === 0;

  (possible ? it : it.skip)(
    'makes tensors go by the socket; answers stay right',
    async () => {
      await start(['wide'], UNDER);
      for (const count of [10, 70_000, 300_000, 20]) {
        const data = Array.from({ length: count }, (_, i) => i % 1000);
        const answer = await infer('wide', [{ name: 'INPUT0', datatype: 'FP32', data }]);
        expect(answer.status).toBe(200);
        expect(Buffer.from(Float32Array.from(answer.data!).buffer).equals(Buffer.from(Float32Array.from(data).buffer))).toBe(true);
      }
      expect(instanceHosts(server.child.pid!)).toHaveLength(1);
    },
    60_000,
  );
});

describe('the server killed with SIGKILL', () => {
  it('leaves no process behind, not even one inside a run', async () => {
    await start(['double', 'slow']);
    const tree = descendants(server.child.pid!);
    expect(instanceHosts(server.child.pid!)).toHaveLength(2);
    const running = slow(1, FOR_EVER).catch((error: unknown) => error);
    expect(await scaled('double', 1)).toMatchObject({ data: [2] });
    await server.stop('SIGKILL');
    expect(await running).toHaveProperty('message', 'fetch failed');
    await until('all its processes have ended', 10_000, () => !tree.some(isAlive));
  }, 60_000);
});
