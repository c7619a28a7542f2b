/**
 * The data plane on real sockets: framing, pipelining, the hand-over to node:http with the bytes already read, limits,
 * time-outs, disconnects and closing.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { createLogger, SILENT } from '@paceline/telemetry';
import { catalogOf } from '../testing/fake-lane.js';
import { decodeResponse, post, RawClient } from '../testing/http-client.js';
import { startTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';
import { createHttpDataPlane } from './data-plane.js';
import { decodeJsonBody } from './decode-body.js';

let server: TestServer;
const clients: RawClient[] = [];

async function start(options: TestServerOptions = {}): Promise<void> {
  server = await startTestServer(options);
}

async function connect(): Promise<RawClient> {
  const client = await RawClient.connect(server.port);
  clients.push(client);
  return client;
}

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await server.close();
});

const body = (x: number): string => `{"id":"${x}","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,4],"data":[${x},0,0,0]}]}`;
const PATH = '/v2/models/identity_int32/infer';
const infer = (x: number, headers: Record<string, string> = {}): Buffer => post(PATH, body(x), headers);
const LIVE = 'GET /v2/health/live HTTP/1.1\r\nHost: test\r\n\r\n';

/** The same request in chunked form, which only node:http reads. */
function chunked(x: number): string {
  const text = body(x);
  const half = text.length >> 1;
  const chunk = (part: string): string => `${part.length.toString(16)}\r\n${part}\r\n`;
  return `POST ${PATH} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(text.slice(0, half))}${chunk(text.slice(half))}0\r\n\r\n`;
}

async function idOf(client: RawClient): Promise<string> {
  const { status, text } = decodeResponse(await client.response());
  expect(status).toBe(200);
  return (JSON.parse(text) as { id: string }).id;
}

/** Waits until `condition` holds, checked whenever the server's event loop has turned. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('framing', () => {
  test('a request may arrive in any pieces', async () => {
    await start();
    const client = await connect();
    const whole = Buffer.concat([infer(1), infer(2)]);
    const cuts = [3, 20, 60, infer(1).length - 10, infer(1).length, infer(1).length + 5, whole.length];
    let from = 0;
    for (const cut of cuts) {
      client.send(whole.subarray(from, cut));
      from = cut;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([await idOf(client), await idOf(client)]).toEqual(['1', '2']);
    expect(server.plane.connectionCount).toBe(1);
  });

  test('one byte at a time', async () => {
    await start();
    const client = await connect();
    for (const byte of infer(7)) {
      client.send(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await idOf(client)).toBe('7');
  });

  test('a large binary body comes back whole', async () => {
    await start();
    const client = await connect();
    const data = Buffer.alloc(4_000_000);
    for (let i = 0; i < 1_000_000; i++) data.writeFloatLE(i, i * 4);
    const json = Buffer.from('{"parameters":{"binary_data_output":true},"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1000000],"parameters":{"binary_data_size":4000000}}]}');
    client.send(post('/v2/models/identity_var/infer', Buffer.concat([json, data]), { 'Inference-Header-Content-Length': String(json.length) }));
    const response = await client.response();
    const at = Number(response.headers['inference-header-content-length']);
    expect(response.body.subarray(at).equals(data)).toBe(true);
    client.send(infer(1));
    expect(await idOf(client)).toBe('1');
  });

  test('replies leave in request order though later ones are ready first', async () => {
    await start({ auto: false });
    const client = await connect();
    client.send(Buffer.concat([infer(1), post('/v2/models/nosuch/infer', '{}'), infer(2)]));
    await until(() => server.queue.enqueued.length === 2);
    const [first, second] = server.queue.enqueued;
    server.service.onFrame(second?.ref.number ?? 0, { ok: true, index: 0, final: true, outputs: [], timings: undefined });
    server.service.onFrame(first?.ref.number ?? 0, { ok: true, index: 0, final: true, outputs: [], timings: undefined });
    expect(await idOf(client)).toBe('1');
    expect((await client.response()).status).toBe(404);
    expect(await idOf(client)).toBe('2');
  });

  test('more pipelined requests than may be under way wait unread, and all are answered in order', async () => {
    await start({ auto: false, limits: { maxPipelined: 3 } });
    const client = await connect();
    const count = 200;
    client.send(Buffer.concat(Array.from({ length: count }, (_, i) => infer(i))));
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      await until(() => server.queue.enqueued.length > i);
      expect(server.queue.enqueued.length - i).toBeLessThanOrEqual(3);
      server.answerNext();
      ids.push(await idOf(client));
    }
    expect(ids).toEqual(Array.from({ length: count }, (_, i) => `${i}`));
  });

  test('Connection: close is announced and done', async () => {
    await start();
    const client = await connect();
    client.send(infer(1, { Connection: 'close' }));
    const response = await client.response();
    expect(response.headers.connection).toBe('close');
    expect(response.headers.date).toMatch(/GMT$/);
    expect(await client.closed()).toBe('');
  });
});

describe('hand-over to node:http', () => {
  test.each<[string, string | Buffer, (client: RawClient) => Promise<void>]>([
    ['another path', LIVE, async (c) => expect((await c.response()).status).toBe(200)],
    ['a chunked body', chunked(5), async (c) => expect(await idOf(c)).toBe('5')],
    ['a path that needs decoding', post('/v2/models/identity%5Fint32/infer', body(5)), async (c) => expect(await idOf(c)).toBe('5')],
    ['a query', post(`${PATH}?a=b`, body(5)), async (c) => expect(await idOf(c)).toBe('5')],
    ['HTTP/1.0', `POST ${PATH} HTTP/1.0\r\nContent-Length: ${body(5).length}\r\n\r\n${body(5)}`, async (c) => expect(await idOf(c)).toBe('5')],
    ['no Host', `POST ${PATH} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}`, async (c) => expect((await c.response()).status).toBe(400)],
    ['two lengths', post(PATH, body(5), { 'content-length': '3' }), async (c) => expect((await c.response()).status).toBe(400)],
    ['length and chunked', post(PATH, body(5), { 'Transfer-Encoding': 'chunked' }), async (c) => expect((await c.response()).status).toBe(400)],
    ['a folded header', post(PATH, body(5), { 'X-A': 'a\r\n b' }), async (c) => expect([200, 400]).toContain((await c.response()).status)],
    ['a space before the colon', post(PATH, body(5), { 'X-A ': 'a' }), async (c) => expect((await c.response()).status).toBe(400)],
    ['noise', Buffer.from([0x16, 3, 1, 2, 0, 13, 10, 13, 10]), async (c) => expect((await c.response()).status).toBe(400)],
  ])('%s', async (_name, bytes, check) => {
    await start();
    const client = await connect();
    client.send(bytes);
    await check(client);
  });

  test('mixed requests in one write are answered in order, fast and slow path in turn', async () => {
    await start();
    const client = await connect();
    client.send(Buffer.concat([infer(1), infer(2), Buffer.from(chunked(3)), infer(4), Buffer.from(LIVE), infer(5)]));
    expect([await idOf(client), await idOf(client), await idOf(client), await idOf(client)]).toEqual(['1', '2', '3', '4']);
    expect((await client.response()).status).toBe(200);
    expect(await idOf(client)).toBe('5');
    client.send(infer(6));
    expect(await idOf(client)).toBe('6');
  });

  test('it waits for the replies before it, and loses nothing that comes meanwhile', async () => {
    await start({ auto: false });
    const client = await connect();
    client.send(Buffer.concat([infer(1), Buffer.from(chunked(2)).subarray(0, 40)]));
    await until(() => server.queue.enqueued.length === 1);
    client.send(Buffer.from(chunked(2)).subarray(40));
    client.send(infer(3));
    await new Promise((resolve) => setImmediate(resolve));
    server.answerNext();
    expect(await idOf(client)).toBe('1');
    await until(() => server.queue.enqueued.length >= 2);
    server.answerNext();
    expect(await idOf(client)).toBe('2');
    await until(() => server.queue.enqueued.length >= 3);
    server.answerNext();
    expect(await idOf(client)).toBe('3');
  });

  test('Expect: 100-continue gets its interim response, then the answer', async () => {
    await start();
    const client = await connect();
    client.send(`POST ${PATH} HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: ${body(8).length}\r\n\r\n`);
    expect((await client.response()).status).toBe(100);
    client.send(body(8));
    expect(await idOf(client)).toBe('8');
  });

  test('a request line cut early is handed over once it cannot become an inference request', async () => {
    await start();
    const client = await connect();
    for (const piece of ['G', 'ET /v2/hea', 'lth/live HTTP/1.1\r\nHo', 'st: test\r\n\r', '\n']) {
      client.send(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await client.response()).status).toBe(200);
  });
});

describe('limits', () => {
  test('headers beyond the limit are answered 431, with or without an end', async () => {
    await start({ limits: { maxHeaderBytes: 1000 } });
    for (const tail of ['', '\r\n\r\n']) {
      const client = await connect();
      client.send(`POST ${PATH} HTTP/1.1\r\nHost: test\r\nX: ${'a'.repeat(1000)}${tail}`);
      const response = await client.response();
      expect(response.status).toBe(431);
      expect(response.body.toString()).toBe('{"error":"request headers exceed the limit of 1000 bytes"}');
    }
  });

  test('a body beyond the limit is answered before it is sent', async () => {
    await start({ limits: { maxInputBytes: 1000 } });
    const client = await connect();
    client.send(`POST ${PATH} HTTP/1.1\r\nHost: test\r\nContent-Length: 1001\r\n\r\n`);
    const response = await client.response();
    expect(response.status).toBe(413);
    expect(response.body.toString()).toContain('request body size of 1001 bytes exceeds the maximum allowed input size of 1000 bytes');
    expect(response.headers.connection).toBe('close');
  });

  test('the same for a chunked body that grows beyond the limit', async () => {
    await start({ limits: { maxInputBytes: 1000 } });
    const client = await connect();
    client.send(`POST ${PATH} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${'a'.repeat(1001)}\r\n0\r\n\r\n`);
    const response = await client.response();
    expect(response.status).toBe(413);
    expect(response.body.toString()).toContain('request body size of 1001 bytes exceeds');
  });

  test('bodies together beyond the budget are refused with a time to come back; room is made by answers and by leaving', async () => {
    await start({ auto: false, limits: { maxBufferedBytes: 150_000 } });
    const head = (length: number): string => `POST ${PATH} HTTP/1.1\r\nHost: test\r\nContent-Length: ${length}\r\n\r\n`;
    const holder = await connect();
    holder.send(head(100_000));
    const refused = await connect();
    await until(() => server.plane.connectionCount === 2);
    refused.send(head(100_000));
    const response = await refused.response();
    expect([response.status, response.headers['retry-after']]).toEqual([429, '1']);
    await refused.closed();
    holder.destroy();
    await until(() => server.plane.connectionCount === 0);
    const next = await connect();
    next.send(Buffer.concat([Buffer.from(head(100_000)), Buffer.alloc(100_000, ' ')]));
    expect((await next.response()).status).toBe(400);
  });

  test('connections beyond the limit are dropped', async () => {
    await start({ limits: { maxConnections: 1 } });
    const first = await connect();
    first.send(infer(1));
    expect(await idOf(first)).toBe('1');
    const second = await connect();
    expect(await second.closed()).toBe('');
  });
});

describe('time', () => {
  const S = 1_000_000;

  test.each([
    ['an unfinished head', 'POST /v2/models/x/inf', 'request headers are incomplete after 10 s', 11],
    ['an unfinished body', infer(1).subarray(0, -1).toString(), 'bytes came before 30 s passed without any', 31],
  ])('%s is answered 408 and cut', async (_name, bytes, text, seconds) => {
    const clock = new FakeClock();
    await start({ clock });
    const client = await connect();
    client.send(bytes);
    await until(() => server.plane.server.listening && server.plane.connectionCount === 1);
    // The bytes are read in some turn of the loop: keep the clock going until they were and their time is up.
    let response: Awaited<ReturnType<RawClient['response']>> | undefined;
    void client.response().then((r) => (response = r));
    let ticks = 0;
    await until(() => {
      if (response === undefined && ticks < 60) {
        clock.advance(S);
        ticks += 1;
      }
      return response !== undefined;
    });
    expect(ticks).toBeGreaterThanOrEqual(seconds);
    expect(response?.status).toBe(408);
    expect(response?.body.toString()).toContain(text);
    await client.closed();
  });

  test('a connection without requests is closed, one with a running request is not', async () => {
    const clock = new FakeClock();
    await start({ clock, auto: false });
    const idle = await connect();
    const busy = await connect();
    busy.send(infer(1));
    await until(() => server.queue.enqueued.length === 1);
    clock.advance(80 * S);
    expect(await idle.closed()).toBe('');
    server.answerNext();
    expect(await idOf(busy)).toBe('1');
  });
});

describe('decoding elsewhere', () => {
  test('large JSON goes there, small JSON does not; order is kept, and a client that left is not run for', async () => {
    const waiting: (() => void)[] = [];
    await start({
      offload: {
        minBytes: 200,
        decode: (json, _hasTail, target) => new Promise((resolve) => waiting.push(() => resolve(decodeJsonBody(json, undefined, target)))),
      },
    });
    const client = await connect();
    const large = post(PATH, `${body(1)}${' '.repeat(200)}`);
    client.send(Buffer.concat([large, infer(2)]));
    await until(() => waiting.length === 1 && server.queue.enqueued.length === 1);
    waiting.shift()?.();
    expect([await idOf(client), await idOf(client)]).toEqual(['1', '2']);
    client.send(large);
    await until(() => waiting.length === 1);
    client.destroy();
    await until(() => server.plane.connectionCount === 0);
    waiting.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
    expect(server.queue.enqueued).toHaveLength(2);
  });
});

describe('time on the handed-over path', () => {
  test('node:http enforces its own header time-out though its server never listens', async () => {
    await start();
    const behind = createServer({ headersTimeout: 50, requestTimeout: 100, connectionsCheckingInterval: 10 });
    const plane = createHttpDataPlane({ inferHandler: server.service, catalog: catalogOf(), fallbackServer: behind, logger: createLogger(SILENT) });
    const { port } = await plane.listen('127.0.0.1', 0);
    const client = await RawClient.connect(port);
    client.send('GET /slow HTTP/1.1\r\nHost: te');
    expect((await client.response()).status).toBe(408);
    await client.closed();
    await plane.close(0);
    behind.close();
  });
});

describe('leaving and closing', () => {
  test.each(['destroy', 'half-close'])('a client that leaves by %s cancels its requests', async (way) => {
    await start({ auto: false });
    const client = await connect();
    client.send(Buffer.concat([infer(1), infer(2)]));
    await until(() => server.queue.enqueued.length === 2);
    if (way === 'destroy') client.destroy();
    else client.socket.end();
    await until(() => server.queue.cancelled.length === 2);
    expect(server.service.unanswered).toBe(0);
  });

  test('the same on the handed-over path', async () => {
    await start({ auto: false });
    const client = await connect();
    client.send(chunked(1));
    await until(() => server.queue.enqueued.length === 1);
    client.destroy();
    await until(() => server.queue.cancelled.length === 1);
  });

  test('close ends idle connections, answers what runs, and leaves no socket', async () => {
    await start({ auto: false });
    const idle = await connect();
    const idleBehind = await connect();
    idleBehind.send(LIVE);
    expect((await idleBehind.response()).status).toBe(200);
    const busy = await connect();
    busy.send(infer(1));
    await until(() => server.queue.enqueued.length === 1);
    const closed = server.plane.close(60_000);
    expect(await idle.closed()).toBe('');
    await idleBehind.closed();
    server.answerNext();
    const response = await busy.response();
    expect([response.status, response.headers.connection]).toEqual([200, 'close']);
    await busy.closed();
    await closed;
    expect(server.plane.connectionCount).toBe(0);
  });

  test('a taken port rejects', async () => {
    await start();
    const other = await startTestServer();
    await expect(other.plane.listen('127.0.0.1', server.port)).rejects.toThrow();
    await other.close();
  });

  test('a client that does not read is not buffered for without end', async () => {
    await start();
    const client = await connect();
    client.socket.pause();
    const json = '{"parameters":{"binary_data_output":true},"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,250000],"parameters":{"binary_data_size":1000000}}]}';
    const request = post('/v2/models/identity_var/infer', Buffer.concat([Buffer.from(json), Buffer.alloc(1_000_000)]), { 'Inference-Header-Content-Length': String(json.length) });
    for (let i = 0; i < 30; i++) client.send(request);
    // The server stops reading once its replies are stuck; then the client's own writes are stuck, too.
    let seen = -1;
    await until(() => {
      const before = seen;
      seen = server.queue.enqueued.length;
      return seen > 0 && seen === before && client.socket.writableLength > 1_000_000;
    });
    expect(server.queue.enqueued.length).toBeLessThan(30);
    client.socket.resume();
    for (let i = 0; i < 30; i++) expect((await client.response()).status).toBe(200);
    await once(client.socket.end(), 'close');
  });
});
