/** Decoding in worker threads: same answers as on the main thread, and the main thread stays free meanwhile. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { InferRequest } from '@paceline/protocol';
import { decodeJsonBody } from './decode-body.js';
import { PiscinaJsonOffload } from './json-offload.js';

const TARGET = { model: 'm', version: '' };
let offload: PiscinaJsonOffload;

beforeAll(() => {
  // A thread runs compiled code: the build's, which precedes every test run.
  offload = new PiscinaJsonOffload({ workerUrl: new URL('../../dist/http/json-offload.worker.js', import.meta.url), maxThreads: 1 });
});
afterAll(() => offload.close());

const body = (json: string): Buffer => Buffer.from(json);
const input = (datatype: string, data: string, shape: string): string =>
  `{"id":"x","parameters":{"priority":3,"a":9223372036854775807},"inputs":[{"name":"I","datatype":"${datatype}","shape":${shape},"data":${data}}]}`;

const comparable = (request: InferRequest): unknown => ({ ...request, inputs: request.inputs.map((i) => ({ ...i, data: [...i.data] })) });

test.each([
  input('FP32', '[1,2.5,NaN]', '[3]'),
  input('INT64', '[9007199254740993]', '[1]'),
  input('BYTES', '["é",""]', '[2]'),
  '{"inputs":[],"outputs":[{"name":"O","parameters":{"binary_data":true,"classification":2}}]}',
])('%s is the same request either way', async (json) => {
  const there = await offload.decode(body(json), false, TARGET);
  const here = decodeJsonBody(body(json), undefined, TARGET);
  expect(comparable(there.request)).toEqual(comparable(here.request));
  expect(there.form).toEqual(here.form);
});

test.each([
  '{',
  input('INT8', '[300]', '[1]'),
  '{"inputs":[{"name":"I","datatype":"INT8","shape":[1],"parameters":{"shared_memory_region":"r"}}]}',
])('%s is refused in the same words', async (json) => {
  let refusal: unknown;
  try {
    decodeJsonBody(body(json), undefined, TARGET);
  } catch (error) {
    refusal = error;
  }
  const { code, message, reason } = refusal as Record<string, unknown>;
  await expect(offload.decode(body(json), false, TARGET)).rejects.toMatchObject({ code, message, reason });
});

test('the event loop turns while megabytes are parsed', async () => {
  const json = body(input('FP32', `[${Array.from({ length: 1_000_000 }, (_, i) => (i * 0.001).toFixed(3)).join(',')}]`, '[1000000]'));
  let turns = 0;
  let finished = false;
  const turn = (): void => {
    turns += 1;
    if (!finished) setImmediate(turn);
  };
  const work = offload.decode(json, false, TARGET);
  setImmediate(turn);
  const decoded = await work;
  finished = true;
  expect(decoded.request.inputs[0]?.data).toHaveLength(4_000_000);
  expect(turns).toBeGreaterThan(10);
}, 60_000);
