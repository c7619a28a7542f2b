/** The data plane on real sockets: framing, pipelining, and the hand-over to node:http with the bytes already read. */
import { describe, expect, test } from '@jest/globals';
import { decodeJsonBody } from './decode-body.js';
import { post, type RawClient } from '../testing/http-client.js';
import { body, chunked, idOf, infer, LIVE, PATH, turn, until, usePlane } from '../testing/plane-fixture.js';

const plane = usePlane();

describe('framing', () => {
  test('a request may arrive in any pieces', async () => {
    await plane.start();
    const client = await plane.connect();
    const whole = Buffer.concat([infer(1), infer(2)]);
    const cuts = [3, 20, 60, infer(1).length - 10, infer(1).length, infer(1).length + 5, whole.length];
    let from = 0;
    for (const cut of cuts) {
      client.send(whole.subarray(from, cut));
      from = cut;
      await turn();
    }
    expect([await idOf(client), await idOf(client)]).toEqual(['1', '2']);
    expect(plane.server.plane.connectionCount).toBe(1);
  });

  test('one byte at a time', async () => {
    await plane.start();
    const client = await plane.connect();
    for (const byte of infer(7)) {
      client.send(Buffer.from([byte]));
      await turn();
    }
    expect(await idOf(client)).toBe('7');
  });

  test('a large binary body comes back whole', async () => {
    await plane.start();
    const client = await plane.connect();
    const data = Buffer.alloc(4_000_000);
    for (let i = 0; i < 1_000_000; i++) data.writeFloatLE(i, i * 4);
    const json = Buffer.from(
      '{"parameters":{"binary_data_output":true},"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1000000],"parameters":{"binary_data_size":4000000}}]}',
    );
    client.send(
      post('/v2/models/identity_var/infer', Buffer.concat([json, data]), { 'Inference-Header-Content-Length': String(json.length) }),
    );
    const response = await client.response();
    const at = Number(response.headers['inference-header-content-length']);
    expect(response.body.subarray(at).equals(data)).toBe(true);
    client.send(infer(1));
    expect(await idOf(client)).toBe('1');
  });

  test('replies leave in request order though later ones are ready first', async () => {
    await plane.start({ auto: false });
    const client = await plane.connect();
    client.send(Buffer.concat([infer(1), post('/v2/models/nosuch/infer', '{}'), infer(2)]));
    await until(() => plane.server.queue.enqueued.length === 2);
    const [first, second] = plane.server.queue.enqueued;
    plane.server.service.onFrame(second?.ref.number ?? 0, { ok: true, index: 0, final: true, outputs: [], timings: undefined });
    plane.server.service.onFrame(first?.ref.number ?? 0, { ok: true, index: 0, final: true, outputs: [], timings: undefined });
    expect(await idOf(client)).toBe('1');
    expect((await client.response()).status).toBe(404);
    expect(await idOf(client)).toBe('2');
  });

  test('more pipelined requests than may be under way wait unread, and all are answered in order', async () => {
    await plane.start({ auto: false, limits: { maxPipelined: 3 } });
    const client = await plane.connect();
    const count = 200;
    client.send(Buffer.concat(Array.from({ length: count }, (_, i) => infer(i))));
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      await until(() => plane.server.queue.enqueued.length > i);
      expect(plane.server.queue.enqueued.length - i).toBeLessThanOrEqual(3);
      plane.server.answerNext();
      ids.push(await idOf(client));
    }
    expect(ids).toEqual(Array.from({ length: count }, (_, i) => `${i}`));
  });

  test('Connection: close is announced and done', async () => {
    await plane.start();
    const client = await plane.connect();
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
    [
      'HTTP/1.0',
      `POST ${PATH} HTTP/1.0\r\nContent-Length: ${body(5).length}\r\n\r\n${body(5)}`,
      async (c) => expect(await idOf(c)).toBe('5'),
    ],
    ['no Host', `POST ${PATH} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}`, async (c) => expect((await c.response()).status).toBe(400)],
    ['two lengths', post(PATH, body(5), { 'content-length': '3' }), async (c) => expect((await c.response()).status).toBe(400)],
    [
      'length and chunked',
      post(PATH, body(5), { 'Transfer-Encoding': 'chunked' }),
      async (c) => expect((await c.response()).status).toBe(400),
    ],
    ['a folded header', post(PATH, body(5), { 'X-A': 'a\r\n b' }), async (c) => expect([200, 400]).toContain((await c.response()).status)],
    ['a space before the colon', post(PATH, body(5), { 'X-A ': 'a' }), async (c) => expect((await c.response()).status).toBe(400)],
    ['noise', Buffer.from([0x16, 3, 1, 2, 0, 13, 10, 13, 10]), async (c) => expect((await c.response()).status).toBe(400)],
  ])('%s', async (_name, bytes, check) => {
    await plane.start();
    const client = await plane.connect();
    client.send(bytes);
    await check(client);
  });

  test('mixed requests in one write are answered in order, fast and slow path in turn', async () => {
    await plane.start();
    const client = await plane.connect();
    client.send(Buffer.concat([infer(1), infer(2), chunked(3), infer(4), Buffer.from(LIVE), infer(5)]));
    expect([await idOf(client), await idOf(client), await idOf(client), await idOf(client)]).toEqual(['1', '2', '3', '4']);
    expect((await client.response()).status).toBe(200);
    expect(await idOf(client)).toBe('5');
    client.send(infer(6));
    expect(await idOf(client)).toBe('6');
  });

  test('it waits for the replies before it, and loses nothing that comes meanwhile', async () => {
    await plane.start({ auto: false });
    const client = await plane.connect();
    client.send(Buffer.concat([infer(1), chunked(2).subarray(0, 40)]));
    await until(() => plane.server.queue.enqueued.length === 1);
    client.send(chunked(2).subarray(40));
    client.send(infer(3));
    await turn();
    plane.server.answerNext();
    expect(await idOf(client)).toBe('1');
    await until(() => plane.server.queue.enqueued.length >= 2);
    plane.server.answerNext();
    expect(await idOf(client)).toBe('2');
    await until(() => plane.server.queue.enqueued.length >= 3);
    plane.server.answerNext();
    expect(await idOf(client)).toBe('3');
  });

  test('Expect: 100-continue gets its interim response, then the answer', async () => {
    await plane.start();
    const client = await plane.connect();
    client.send(`POST ${PATH} HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: ${body(8).length}\r\n\r\n`);
    expect((await client.response()).status).toBe(100);
    client.send(body(8));
    expect(await idOf(client)).toBe('8');
  });

  test('a request line cut early is handed over once it cannot become an inference request', async () => {
    await plane.start();
    const client = await plane.connect();
    for (const piece of ['G', 'ET /v2/hea', 'lth/live HTTP/1.1\r\nHo', 'st: test\r\n\r', '\n']) {
      client.send(piece);
      await turn();
    }
    expect((await client.response()).status).toBe(200);
  });
});

describe('decoding elsewhere', () => {
  test('large JSON goes there, small JSON does not; order is kept, and a client that left is not run for', async () => {
    const waiting: (() => void)[] = [];
    await plane.start({
      offload: {
        minBytes: 200,
        decode: (json, _hasTail, target) => new Promise((resolve) => waiting.push(() => resolve(decodeJsonBody(json, undefined, target)))),
      },
    });
    const client = await plane.connect();
    const large = post(PATH, `${body(1)}${' '.repeat(200)}`);
    client.send(Buffer.concat([large, infer(2)]));
    await until(() => waiting.length === 1 && plane.server.queue.enqueued.length === 1);
    waiting.shift()?.();
    expect([await idOf(client), await idOf(client)]).toEqual(['1', '2']);
    client.send(large);
    await until(() => waiting.length === 1);
    client.destroy();
    await until(() => plane.server.plane.connectionCount === 0);
    waiting.shift()?.();
    await turn();
    expect(plane.server.queue.enqueued).toHaveLength(2);
  });
});
