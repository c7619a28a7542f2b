/** Answers that depend on batch-mates: reported for a model whose activations are quantised over the batch, and avoidable. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dynamicInt8Model, temporaryModelRepository, type RepositoryModelFiles, type TemporaryRepository } from '@paceline/testkit';
import { startServer, type ServerProcess } from './support/server-process.js';

const COLUMNS = 16;
const REQUESTS = 48;

function model(name: string, rest: string): RepositoryModelFiles {
  const weights = Int8Array.from({ length: COLUMNS * 4 }, (_, i) => ((i * 37) % 255) - 127);
  return {
    name,
    config: `backend: "onnxruntime" max_batch_size: 64 instance_group { count: 1 }
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ ${COLUMNS} ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
${rest}`,
    versions: { '1': dynamicInt8Model({ rows: COLUMNS, columns: 4, weights }) },
  };
}

const WARNING = 'quantises activations over the whole batch (DynamicQuantizeLinear)';

describe('a model with dynamically quantised activations', () => {
  let repository: TemporaryRepository;
  let server: ServerProcess;

  beforeAll(async () => {
    repository = temporaryModelRepository([
      model('loose', 'dynamic_batching { max_queue_delay_microseconds: 50000 }'),
      model('strict', 'dynamic_batching { } parameters { key: "batch_invariant" value { string_value: "true" } }'),
    ]);
    server = await startServer([`--model-repository=${repository.root}`]);
  }, 60_000);
  afterAll(async () => {
    await server.stop();
    repository.remove();
  });

  /** Rows of very different size, so that each batch quantises them differently. */
  async function infer(name: string, request: number): Promise<number[]> {
    const scale = 10 ** ((request % 7) - 3);
    const data = Array.from({ length: COLUMNS }, (_, i) => scale * Math.sin(1 + i + request));
    const body = JSON.stringify({ inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, COLUMNS], data }] });
    const response = await fetch(`http://${server.http}/v2/models/${name}/infer`, { method: 'POST', body });
    expect(response.status).toBe(200);
    return ((await response.json()) as { outputs: { data: number[] }[] }).outputs[0]!.data;
  }
  const together = (name: string): Promise<number[][]> =>
    Promise.all(Array.from({ length: REQUESTS }, (_, request) => infer(name, request)));

  it('answers bit for bit as alone with batch_invariant, and not without', async () => {
    const alone: number[][] = [];
    for (let request = 0; request < REQUESTS; request++) alone.push(await infer('strict', request));
    expect(await together('strict')).toEqual(alone);
    const mixed = await together('loose');
    expect(mixed.filter((answer, i) => answer.some((value, j) => value !== alone[i]![j])).length).toBeGreaterThan(0);
    const { model_stats: stats } = (await (await fetch(`http://${server.http}/v2/models/strict/stats`)).json()) as {
      model_stats: { inference_count: number; execution_count: number }[];
    };
    expect(stats[0]).toMatchObject({ inference_count: 2 * REQUESTS, execution_count: 2 * REQUESTS });
  }, 60_000);

  it('says so in the log and in the index, for the model it is true of', async () => {
    const warned = server.log.filter((line) => line.includes(WARNING));
    expect(warned.some((line) => line.includes("model 'loose'"))).toBe(true);
    expect(warned.some((line) => line.includes("model 'strict'"))).toBe(false);
    const index = (await (await fetch(`http://${server.http}/v2/repository/index`, { method: 'POST' })).json()) as {
      name: string;
      state: string;
      reason: string;
    }[];
    expect(index).toMatchObject([
      { name: 'loose', state: 'READY', reason: expect.stringContaining(WARNING) },
      { name: 'strict', state: 'READY' },
    ]);
    expect(index[1]?.reason ?? '').toBe('');
  });
});
