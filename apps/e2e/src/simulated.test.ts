/** Models of the simulated accelerator in a server: the rate and the batches that alpha and beta predict, answers, faults. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { instanceHosts } from './support/process-tree.js';
import { startServer, type ServerProcess } from './support/server-process.js';

const ALPHA_MS = 40;
const BETA_MS = 1;
const MAX_BATCH = 8;
/** What one accelerator bears with full batches. */
const PREDICTED_PER_S = (1000 * MAX_BATCH) / (ALPHA_MS + BETA_MS * MAX_BATCH);
const IN_FLIGHT = 32;
const REQUESTS = 480;
/** With this seed the first hang comes with run 57, when the watchdog has learned how short a run is, and the next one late. */
const HANGS = { rate: '0.01', seed: '17', runs: 100 };
/** With this seed the first crash comes with run 27. */
const CRASHES = { rate: '0.02', seed: '1', runs: 40 };

const model = (name: string, parameters: Readonly<Record<string, string | number>>) => ({
  name,
  config: `backend: "simulated" max_batch_size: ${MAX_BATCH} dynamic_batching { }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "ECHO" data_type: TYPE_STRING dims: [ 1 ] } ]
${Object.entries(parameters).map(([key, value]) => `parameters { key: "simulated_${key}" value { string_value: "${value}" } }`).join('\n')}`,
  versions: { '1': {} },
}); // prettier-ignore

describe('a simulated accelerator', () => {
  let repository: TemporaryRepository;
  let server: ServerProcess;

  beforeAll(async () => {
    repository = temporaryModelRepository([
      model('steady', { alpha_ms: ALPHA_MS, beta_ms: BETA_MS }),
      model('failing', { failure_rate: 1 }),
      model('hanging', { hang_rate: HANGS.rate, seed: HANGS.seed }),
      model('crashing', { crash_rate: CRASHES.rate, seed: CRASHES.seed }),
    ]);
    server = await startServer([`--model-repository=${repository.root}`]);
  }, 60_000);
  afterAll(async () => {
    await server.stop();
    repository.remove();
  });

  async function infer(name: string, value: number): Promise<{ status: number; text: string }> {
    const inputs = [
      { name: 'X', datatype: 'FP32', shape: [1, 2], data: [value, value + 0.5] },
      { name: 'TEXT', datatype: 'BYTES', shape: [1, 1], data: [`text ${value}`] },
    ];
    const response = await fetch(`http://${server.http}/v2/models/${name}/infer`, { method: 'POST', body: JSON.stringify({ inputs }) });
    return { status: response.status, text: await response.text() };
  }

  async function expectAnswer(name: string, value: number): Promise<void> {
    const { status, text } = await infer(name, value);
    if (status !== 200) throw new Error(`${status} ${text}`);
    const { outputs } = JSON.parse(text) as { outputs: { name: string; data: unknown[] }[] };
    expect(outputs.map(({ name: output, data }) => [output, data])).toEqual([
      ['Y', [value, value + 0.5]],
      ['ECHO', [`text ${value}`]],
    ]);
  }

  async function executions(name: string): Promise<number> {
    const text = await (await fetch(`http://${server.metrics}/metrics`)).text();
    return Number(new RegExp(`^nv_inference_exec_count\\{model="${name}".*\\} (\\d+)`, 'm').exec(text)?.[1]);
  }

  it('bears full batches at the rate that alpha and beta predict, and gives each request its own back', async () => {
    let next = 0;
    const client = async (): Promise<void> => {
      while (next < REQUESTS) await expectAnswer('steady', next++);
    };
    const begunMs = performance.now();
    await Promise.all(Array.from({ length: IN_FLIGHT }, client));
    const perS = (1000 * REQUESTS) / (performance.now() - begunMs);
    expect(perS).toBeLessThan(1.01 * PREDICTED_PER_S);
    expect(perS).toBeGreaterThan(0.8 * PREDICTED_PER_S);
    const batches = await executions('steady');
    expect(batches).toBeGreaterThanOrEqual(REQUESTS / MAX_BATCH);
    expect(batches).toBeLessThan((1.25 * REQUESTS) / MAX_BATCH);
  }, 30_000);

  it('fails as a model does', async () => {
    const { status, text } = await infer('failing', 1);
    expect(status).toBe(500);
    expect(text).toContain('simulated failure');
  });

  it('that hangs is ended by the watchdog, and the request runs elsewhere', async () => {
    const tookMs: number[] = [];
    for (let i = 0; i < HANGS.runs; i++) {
      const begunMs = performance.now();
      await expectAnswer('hanging', i);
      tookMs.push(performance.now() - begunMs);
    }
    expect(tookMs.filter((ms) => ms > 1000)).toHaveLength(1);
  }, 30_000);

  it('that crashes comes back, and no request is lost', async () => {
    const before = new Set(instanceHosts(server.child.pid!));
    for (let i = 0; i < CRASHES.runs; i++) await expectAnswer('crashing', i);
    const fresh = instanceHosts(server.child.pid!).filter((pid) => !before.has(pid));
    expect(fresh.length).toBeGreaterThanOrEqual(1);
  }, 30_000);
});
