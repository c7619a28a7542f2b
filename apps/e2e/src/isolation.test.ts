/** Hundreds of bad requests among good ones in the same batches: each good one gets its own right answer. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { Draw } from './support/draw.js';
import { FIXTURE_MODELS } from './support/fixture-models.js';
import { startServer, type ServerProcess } from './support/server-process.js';

const SEED = 20_261_130;

/** Bodies that are refused, each with the status and a part of the text that it must get. */
const BAD: readonly { readonly body: string; readonly status: number; readonly text: string }[] = [
  { body: '{"inputs":[', status: 400, text: 'failed to parse' },
  { body: '{"inputs":[]}', status: 400, text: "missing required input(s) ['INPUT0']" },
  { body: '{"inputs":[{"name":"INPUT0","datatype":"INT64","shape":[1,1],"data":[1,2]}]}', status: 400, text: 'INPUT0' },
  { body: '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[1]}]}', status: 400, text: "expects 'INT64'" },
  { body: '{"inputs":[{"name":"INPUT0","datatype":"INT64","shape":[65,1],"data":[]}]}', status: 400, text: 'INPUT0' },
  { body: '{"inputs":[{"name":"INPUT0","datatype":"INT64","shape":[1,-1],"data":[1]}]}', status: 400, text: 'INPUT0' },
  // Accepted, batched with good ones, and fails only when the model runs:
  { body: '{"inputs":[{"name":"INPUT0","datatype":"INT64","shape":[1,1],"data":[77]}]}', status: 400, text: 'out of' },
];

describe('bad requests', () => {
  let repository: TemporaryRepository;
  let server: ServerProcess;

  beforeAll(async () => {
    repository = temporaryModelRepository(FIXTURE_MODELS);
    server = await startServer([`--model-repository=${repository.root}`, '--model-control-mode=explicit', '--load-model=gather']);
  }, 60_000);
  afterAll(async () => {
    await server.stop();
    repository.remove();
  });

  async function post(body: string): Promise<{ status: number; json: { error?: string; outputs?: { data: number[] }[] } }> {
    const response = await fetch(`http://${server.http}/v2/models/gather/infer`, { method: 'POST', body });
    return { status: response.status, json: (await response.json()) as { error?: string; outputs?: { data: number[] }[] } };
  }

  it(`cost nobody else anything (seed ${SEED})`, async () => {
    const draw = new Draw(SEED);
    const asked = Array.from({ length: 900 }, () => {
      if (draw.chance(0.4)) return { bad: draw.pick(BAD) };
      const rows = draw.int(1, 3);
      const indices = Array.from({ length: rows }, () => draw.int(0, 3));
      return { indices, body: JSON.stringify({ inputs: [{ name: 'INPUT0', datatype: 'INT64', shape: [rows, 1], data: indices }] }) };
    });
    for (let at = 0; at < asked.length; at += 60) {
      await Promise.all(
        asked.slice(at, at + 60).map(async (request) => {
          const { status, json } = await post(request.bad?.body ?? request.body!);
          if (request.bad) {
            expect({ status, body: request.bad.body }).toEqual({ status: request.bad.status, body: request.bad.body });
            expect(json.error).toContain(request.bad.text);
          } else {
            expect(status).toBe(200);
            expect(json.outputs![0]!.data).toEqual(request.indices.map((i) => (i + 1) * 10));
          }
        }),
      );
    }
    const stats = (await (await fetch(`http://${server.http}/v2/models/gather/stats`)).json()) as {
      model_stats: { inference_count: number; execution_count: number }[];
    };
    const { inference_count: rows, execution_count: executions } = stats.model_stats[0]!;
    expect(rows / executions).toBeGreaterThan(1.5); // they really shared batches
  }, 120_000);
});
