/** The server as a process: how it starts, refuses to start, and ends. */
import { spawnSync } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { FIXTURE_MODELS } from './support/fixture-models.js';
import { descendants, instanceHosts, schedulingPolicy } from './support/process-tree.js';
import { runServerToExit, startServer } from './support/server-process.js';

const slowBody = (iterations: number): string =>
  JSON.stringify({
    inputs: [
      { name: 'INPUT0', datatype: 'FP32', shape: [1, 1], data: [1.5] },
      { name: 'ITERS', datatype: 'INT64', shape: [1, 1], data: [iterations] },
    ],
  });

describe('the server process', () => {
  let repository: TemporaryRepository;
  let explicit: readonly string[];

  beforeAll(() => {
    repository = temporaryModelRepository(FIXTURE_MODELS);
    explicit = [`--model-repository=${repository.root}`, '--model-control-mode=explicit'];
  });
  afterAll(() => repository.remove());

  it('finishes what it accepted when it is told to end, and leaves no process behind', async () => {
    const server = await startServer([...explicit, '--load-model=slow']);
    const tree = descendants(server.child.pid!);
    expect(tree.length).toBeGreaterThan(0);
    const executing = async (): Promise<number> => {
      const stats = (await (await fetch(`http://${server.metrics}/metrics`)).text()).match(
        /^nv_inference_pending_request_count\{.*model="slow".*\} (\d+)/m,
      );
      return Number(stats?.[1] ?? 0);
    };
    const answers = Promise.all(
      Array.from({ length: 12 }, async () => {
        const response = await fetch(`http://${server.http}/v2/models/slow/infer`, { method: 'POST', body: slowBody(1000) });
        return { status: response.status, body: (await response.json()) as { outputs?: { data: number[] }[] } };
      }),
    );
    // Accepted = the server counts some of them as waiting behind the running batch.
    while ((await executing()) === 0);
    const exit = server.stop('SIGTERM');
    for (const answer of await answers) {
      expect(answer.status).toBe(200);
      expect(answer.body.outputs![0]!.data).toEqual([1.5]);
    }
    expect(await exit).toBe(0);
    for (const pid of tree) expect(existsSync(`/proc/${pid}`)).toBe(false);
  }, 60_000);

  it('waits for its turn on a busy core unless it is told not to; its instance hosts never do', async () => {
    const [ordinary, batch] = [0, 3];
    const mayBeBatch = spawnSync('chrt', ['--batch', '0', 'true']).status === 0;
    for (const [flags, policy] of [
      [[], mayBeBatch ? batch : ordinary],
      [['--cpu-scheduling=unchanged'], ordinary],
    ] as const) {
      const server = await startServer([...explicit, '--load-model=slow', ...flags]);
      const hosts = instanceHosts(server.child.pid!);
      expect(hosts.length).toBeGreaterThan(0);
      expect({ flags, server: schedulingPolicy(server.child.pid!) }).toEqual({ flags, server: policy });
      // The test itself is the limit of time: a host is made ordinary a moment after its start.
      for (const host of hosts) while (schedulingPolicy(host) !== ordinary) await setTimeout(10);
      expect(await server.stop('SIGTERM')).toBe(0);
    }
  }, 60_000);

  it('names the port that is taken and what to do about it', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const { port } = holder.address() as AddressInfo;
    const exit = await runServerToExit([...explicit, `--http-port=${port}`, '--grpc-port=0', '--metrics-port=0']);
    holder.close();
    expect(exit.code).toBe(1);
    expect(exit.stderr).toContain(`127.0.0.1:${port}`);
    expect(exit.stderr).toContain('already in use');
    expect(exit.stderr).toContain('--http-port');
  }, 60_000);

  it('ends with an error when a model cannot load, and says which and why', async () => {
    const exit = await runServerToExit([`--model-repository=${repository.root}`, '--http-port=0', '--grpc-port=0', '--metrics-port=0']);
    expect(exit.code).toBe(1);
    expect(exit.stderr).toContain('broken_config');
    expect(exit.stderr).toContain('config.pbtxt');
  }, 60_000);

  it('says in one line that a model repository cannot be read', async () => {
    const exit = await runServerToExit(['--model-repository=/no/such/folder', '--http-port=0', '--grpc-port=0', '--metrics-port=0']);
    expect(exit.code).toBe(1);
    expect(exit.stderr).toContain("paceline: failed to read model repository '/no/such/folder'");
    expect(exit.stderr).not.toContain('    at ');
  }, 60_000);

  it('names an unknown flag and the one that was probably meant', async () => {
    const exit = await runServerToExit(['--model-repositry=/models']);
    expect(exit.code).toBe(1);
    expect(exit.stderr).toContain('--model-repository');
  }, 60_000);

  it('prints every flag for --help', async () => {
    const exit = await runServerToExit(['--help']);
    expect(exit.code).toBe(0);
    expect(exit.stdout).toContain('--model-control-mode');
    expect(exit.stdout).toContain('--http-port');
  }, 60_000);
});
