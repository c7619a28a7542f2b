/** What the gRPC server refuses before a message is read, and how it sends its clients away; over real HTTP/2 connections. */
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { afterEach, describe, expect, it } from '@jest/globals';
import { status } from '@grpc/grpc-js';
import { ServingError } from '@paceline/protocol';
import { addRequest, echo, failure, GrpcHarness } from '../testing/grpc-harness.js';
import { until } from '../testing/plane-fixture.js';

const INFER = '/inference.GRPCInferenceService/ModelInfer';
const STREAM = '/inference.GRPCInferenceService/ModelStreamInfer';
let t: GrpcHarness;
const sessions: ClientHttp2Session[] = [];

async function start(limits: ConstructorParameters<typeof GrpcHarness>[0] = {}): Promise<void> {
  t = new GrpcHarness(limits);
  await t.start();
}
afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  await t.stop();
});

interface RawCall {
  readonly stream: ClientHttp2Stream;
  /** gRPC status and message, once the server has answered. */
  readonly answer: Promise<[string, string]>;
}

/** A call that sends exactly these bytes and no end. */
function raw(path: string, ...pieces: readonly Buffer[]): RawCall {
  const session = connect(`http://${t.address}`);
  sessions.push(session);
  session.on('error', () => undefined);
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' });
  stream.on('error', () => undefined);
  const answer = new Promise<[string, string]>((resolve) => {
    stream.on('response', (headers) => resolve([String(headers['grpc-status']), decodeURI(String(headers['grpc-message']))]));
  });
  for (const piece of pieces) stream.write(piece);
  stream.resume();
  return { stream, answer };
}

function prefix(bytes: number): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes, 1);
  return head;
}

describe('messages', () => {
  it('that are too large are refused by their announced size, whatever pieces it comes in', async () => {
    await start();
    const announced = prefix(1_000_001);
    for (const pieces of [[announced], [announced.subarray(0, 2), announced.subarray(2)]]) {
      expect(await raw(INFER, ...pieces).answer).toEqual([
        String(status.RESOURCE_EXHAUSTED),
        'request message of 1000001 bytes exceeds the maximum allowed input size of 1000000 bytes. Use --http-max-input-size to increase the limit.',
      ]);
    }
    t.handler.onInfer = echo;
    expect((await t.call('modelInfer', addRequest())).modelName).toBe('add_sub');
  });

  it.each([INFER, STREAM])(
    'count against the byte budget before they are read, and give back when their client leaves (%s)',
    async (path) => {
      await start({ maxBufferedBytes: 250_000 });
      const holder = raw(path, prefix(200_000), Buffer.alloc(10));
      await until(() => t.budget.usedBytes === 200_000);
      const [code, text] = await raw(path, prefix(100_000)).answer;
      expect(code).toBe(String(status.RESOURCE_EXHAUSTED));
      expect(text).toContain('a request body of 100000 bytes does not fit beside the 200000 bytes');
      const error = await failure(t.bytesCall(INFER, Buffer.alloc(120_000)));
      expect([error.code, error.metadata.get('retry-after-ms'), error.metadata.get('grpc-retry-pushback-ms')]).toEqual([
        status.RESOURCE_EXHAUSTED,
        ['1000'],
        ['1000'],
      ]);
      holder.stream.close();
      await until(() => t.budget.usedBytes === 0);
      const next = await failure(t.bytesCall(INFER, Buffer.alloc(120_000)));
      expect(next.code).toBe(status.INVALID_ARGUMENT);
      await until(() => t.budget.usedBytes === 0);
    },
  );

  it('that stop half way are given up', async () => {
    await start({ stallTimeoutS: 0.05 });
    const [code, text] = await raw(INFER, prefix(1000), Buffer.alloc(10)).answer;
    expect(code).toBe(String(status.DEADLINE_EXCEEDED));
    expect(text).toContain('nothing of its last 990 bytes came in 0.05 s (--http-stall-timeout-secs)');
  });

  it('that were whole are never given up, however long they take', async () => {
    await start({ stallTimeoutS: 0.05 });
    const reply = t.call('modelInfer', addRequest());
    await until(() => t.handler.held.length === 1);
    const later = performance.now() + 120;
    await until(() => performance.now() > later);
    echo(t.handler.held[0]!);
    expect((await reply).modelName).toBe('add_sub');
  });
});

describe('connections', () => {
  it('are counted, and those beyond the limit dropped', async () => {
    await start({ maxConnections: 1 });
    t.handler.onInfer = echo;
    await t.call('modelInfer', addRequest());
    expect(t.server.connectionCount).toBe(1);
    const second = connect(`http://${t.address}`);
    sessions.push(second);
    await new Promise((resolve) => second.on('error', () => undefined).on('close', resolve));
    expect(t.server.connectionCount).toBe(1);
  });

  it('are told to go when the server drains, and what is under way on them is finished', async () => {
    await start();
    const session = connect(`http://${t.address}`);
    sessions.push(session);
    const goaway = new Promise<[number, number]>((resolve) => session.on('goaway', (code, lastStream) => resolve([code, lastStream])));
    await new Promise((resolve) => session.on('connect', resolve));
    const reply = t.call('modelInfer', addRequest());
    await until(() => t.handler.held.length === 1);
    t.server.beginDrain();
    expect(await goaway).toEqual([0, 2 ** 31 - 1]);
    echo(t.handler.held[0]!);
    expect((await reply).modelName).toBe('add_sub');
  });
});

describe('time', () => {
  it('that a client grants is handed on', async () => {
    await start();
    const limits: unknown[] = [];
    t.handler.onLimit = (limit) => limits.push(limit);
    t.handler.onInfer = echo;
    await t.call('modelInfer', addRequest());
    await t.call('modelInfer', addRequest(), undefined, { deadline: Date.now() + 50_000 });
    expect(limits).toEqual([undefined, expect.objectContaining({ setBy: 'the deadline of the call' })]);
    const { limitUs } = limits[1] as { limitUs: number };
    expect(limitUs).toBeGreaterThan(40_000_000);
    expect(limitUs).toBeLessThanOrEqual(50_001_000);
  });

  it('of a refusal to come back is a trailer', async () => {
    await start();
    t.handler.infer = () => {
      throw new ServingError('RESOURCE_EXHAUSTED', 'full', { reason: 'queue_full', retryAfterMs: 12.5 });
    };
    const error = await failure(t.call('modelInfer', addRequest()));
    expect(error.metadata.getMap()).toMatchObject({
      'retry-after-ms': '13',
      'grpc-retry-pushback-ms': '13',
      'paceline-reason': 'queue_full',
    });
  });
});
