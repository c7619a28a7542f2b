/**
 * Clients of a cluster that do harm: one sends a request that hangs wherever it runs, others never read what they asked
 * for. Only they get less than they wanted; everybody else is served as before.
 */
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { create, toBinary } from '@bufbuild/protobuf';
import { ModelInferRequestSchema } from '@paceline/protocol/grpc';
import { slowModel } from '@paceline/testkit';
import { aftermath } from './cluster/aftermath.js';
import { float32 } from './cluster/questions.js';
import { MODELS, ShakenCluster } from './cluster/shaken-cluster.js';
import { inferPath, post } from './support/http-text.js';
import { Scrape } from './support/scrape.js';
import { until } from './support/until.js';

const SEED = 20_261_130;
const DEADLINE_MS = 60_000;
const FOR_EVER = 1_000_000_000;
const STALL_S = 3;
/** Many times over the runs after which a worker has learned how long one takes. */
const RUNS = 800;
const DEAF_SOCKETS = 4;
/** Of each connection at once. A gateway holds what they are not willing to take until it sends them away. */
const DEAF_REQUESTS = 8;
const REPLY_COUNT = 1_000_000;
const SLOW = {
  name: 'slow',
  config: `backend: "onnxruntime" max_batch_size: 4
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "ITERS" data_type: TYPE_INT64 dims: [ 1 ] } ]
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { }`,
  versions: { '1': slowModel() },
};
/** A reply of 4 MB to a request of four bytes. */
const LARGE = {
  name: 'large',
  config: `backend: "simulated" max_batch_size: 1
input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ ${REPLY_COUNT} ] }
instance_group { count: 1 kind: KIND_CPU }`,
  versions: { '1': {} },
};

describe('a cluster with clients that do harm', () => {
  let shaken: ShakenCluster;
  beforeAll(async () => {
    const flags = [`--http-stall-timeout-secs=${STALL_S}`];
    const options = { seed: SEED, deadlineMs: DEADLINE_MS, more: [SLOW, LARGE] };
    shaken = await ShakenCluster.start({ gateways: 2, schedulers: 1, workers: 2 }, options, flags);
  }, 90_000);
  afterAll(() => shaken?.end(), 60_000);

  async function slow(value: number, iterations: number, gateway = 0): Promise<{ status: number; text: string }> {
    const inputs = [
      { name: 'INPUT0', datatype: 'FP32', shape: [1, 1], data: [value] },
      { name: 'ITERS', datatype: 'INT64', shape: [1, 1], data: [iterations] },
    ];
    const { http } = shaken.cluster.members('gateway')[gateway]!;
    const response = await fetch(`http://127.0.0.1:${http}${inferPath('slow')}`, { method: 'POST', body: JSON.stringify({ inputs }) });
    return { status: response.status, text: await response.text() };
  }

  it('gives a request that hangs wherever it runs its error, and nobody else one', async () => {
    let next = 0;
    const client = async (): Promise<void> => {
      while (next++ < RUNS) expect((await slow(1, 1)).status).toBe(200);
    };
    await Promise.all(Array.from({ length: 8 }, client));
    const poison = slow(2, FOR_EVER);
    const others = await Promise.all([3, 4, 5, 6, 7, 8, 9].map((value) => slow(value, 1, value % 2)));
    expect(others.map(({ status, text }) => [status, /"data":\[(\d+)/.exec(text)?.[1]])).toEqual(
      [3, 4, 5, 6, 7, 8, 9].map((value) => [200, String(value)]),
    );
    const { status, text } = await poison;
    expect([status, text]).toEqual([504, expect.stringContaining('took longer than its limit')]);
    expect((await slow(10, 1)).text).toContain('"data":[10');
    expect(shaken.books.breaches).toEqual([]);
  }, 120_000);

  it('lets clients that never read stop nobody but themselves, and sends them away', async () => {
    const { books, cluster } = shaken;
    const gateways = cluster.members('gateway');
    // One that reads nothing does not notice that its connection has ended, either: the gateways are asked.
    const connections = async (): Promise<number> => {
      const scrapes = await Promise.all(gateways.map(({ metrics }) => Scrape.of(`127.0.0.1:${metrics}`)));
      return scrapes.reduce((sum, scrape) => sum + scrape.sum('paceline_connections'), 0);
    };
    const before = await connections();
    const sinceMs = performance.now();
    const sockets = gateways.flatMap(({ http }) => Array.from({ length: DEAF_SOCKETS }, () => deafHttp(http, DEAF_REQUESTS)));
    const sessions = gateways.map(({ grpc }) => deafGrpc(grpc, DEAF_REQUESTS));
    const deaf = gateways.length * (DEAF_SOCKETS + 1);
    await until('all of them are connected', 5000, async () => (await connections()) >= before + deaf);
    // Those that others have left since, or that idle clients had, may be gone as well.
    await until('all of them have been sent away', 60_000, async () => (await connections()) <= before);
    await shaken.answers();
    expect(books.breaches).toEqual([]);
    expect(books.longestGapMs(sinceMs)).toBeLessThan(2000);
    await shaken.load.pause();
    expect(await aftermath(cluster, [...MODELS, 'large', 'slow'])).toEqual([]);
    for (const end of [...sockets, ...sessions]) end.destroy();
  }, 120_000);
});

/** Asks for `count` large replies at once on one connection and reads none. */
function deafHttp(port: number, count: number): Socket {
  const json = JSON.stringify({
    inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 1], data: [1] }],
    parameters: { binary_data_output: true },
  });
  const socket = connect(port, '127.0.0.1');
  socket.pause();
  socket.on('error', () => undefined);
  for (let i = 0; i < count; i++) socket.write(post(inferPath('large'), Buffer.from(json)));
  return socket;
}

/** The same over gRPC: as many calls at once, whose windows are never opened. */
function deafGrpc(port: number, count: number): ClientHttp2Session {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  const message = toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: 'large',
      inputs: [{ name: 'X', datatype: 'FP32', shape: [1n, 1n] }],
      rawInputContents: [float32([1])],
    }),
  );
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  for (let i = 0; i < count; i++) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/inference.GRPCInferenceService/ModelInfer',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => undefined);
    stream.pause();
    stream.end(Buffer.concat([head, message]));
  }
  return session;
}
