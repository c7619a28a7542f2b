/** A model with a latency objective under more load than it can bear: what is refused, how, and how it is counted. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { slowModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { startServer, type ServerProcess } from './support/server-process.js';

const OBJECTIVE_MS = 150;
const WARM = 12;
const BURST = 80;
/** Iterations of the model: some ten milliseconds. */
const ITERATIONS = 60;

interface Stats {
  readonly paceline: {
    readonly profile: {
      readonly batch_size: number;
      readonly p50_us: number;
      readonly worst_us: number;
      readonly rows_per_second: number;
    }[];
    readonly objective_ms: number;
    readonly attained: number;
    readonly missed: number;
    readonly shed: number;
  };
}

describe('a latency objective', () => {
  let repository: TemporaryRepository;
  let server: ServerProcess;

  beforeAll(async () => {
    const config = `backend: "onnxruntime" max_batch_size: 1 instance_group { count: 1 }
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "ITERS" data_type: TYPE_INT64 dims: [ 1 ] } ]
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
parameters { key: "latency_objective_ms" value { string_value: "${OBJECTIVE_MS}" } }`;
    repository = temporaryModelRepository([{ name: 'slow', config, versions: { '1': slowModel() } }]);
    server = await startServer([`--model-repository=${repository.root}`]);
  }, 60_000);
  afterAll(async () => {
    await server.stop();
    repository.remove();
  });

  async function infer(): Promise<{ status: number; retryAfter: string | null; reason: string }> {
    const inputs = [
      { name: 'INPUT0', datatype: 'FP32', shape: [1, 1], data: [1] },
      { name: 'ITERS', datatype: 'INT64', shape: [1, 1], data: [ITERATIONS] },
    ];
    const response = await fetch(`http://${server.http}/v2/models/slow/infer`, { method: 'POST', body: JSON.stringify({ inputs }) });
    return { status: response.status, retryAfter: response.headers.get('retry-after'), reason: await response.text() };
  }
  async function stats(): Promise<Stats> {
    const answer = (await (await fetch(`http://${server.http}/v2/models/slow/stats`)).json()) as { model_stats: Stats[] };
    return answer.model_stats[0]!;
  }

  it('is met or refused: in the end attained, missed and shed are all there were', async () => {
    for (let i = 0; i < WARM; i++) expect((await infer()).status).toBe(200);
    const answers = await Promise.all(Array.from({ length: BURST }, () => infer()));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    for (const { status, retryAfter, reason } of refused) {
      expect([429, 504]).toContain(status);
      expect(reason).toContain(`latency objective of ${OBJECTIVE_MS} ms`);
      expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
    }
    const { paceline } = await stats();
    expect(paceline.objective_ms).toBe(OBJECTIVE_MS);
    expect(paceline.attained + paceline.missed + paceline.shed).toBe(WARM + BURST);
    expect(paceline.shed).toBe(refused.length);
    expect(paceline.profile).toHaveLength(1);
    expect(paceline.profile[0]!.batch_size).toBe(1);
    expect(paceline.profile[0]!.worst_us).toBeGreaterThanOrEqual(paceline.profile[0]!.p50_us);
    const metrics = await (await fetch(`http://${server.metrics}/metrics`)).text();
    const value = (family: string): number =>
      Number(new RegExp(`^paceline_objective_${family}_total\\{.*\\} (\\d+)$`, 'm').exec(metrics)?.[1]);
    expect([value('attained'), value('missed'), value('shed')]).toEqual([paceline.attained, paceline.missed, paceline.shed]);
  }, 60_000);

  it('never refuses a request that finds the server idle', async () => {
    for (let i = 0; i < 5; i++) expect((await infer()).status).toBe(200);
  }, 60_000);
});
