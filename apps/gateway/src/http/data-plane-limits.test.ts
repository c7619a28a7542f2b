/** The data plane on real sockets: limits, time-outs, clients that leave or do not read, and closing. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { createLogger, SILENT } from '@paceline/telemetry';
import { catalogOf } from '../testing/fake-lane.js';
import { post, RawClient } from '../testing/http-client.js';
import { body, chunked, idOf, infer, LIVE, PATH, until, usePlane } from '../testing/plane-fixture.js';
import { startTestServer } from '../testing/test-server.js';
import { createHttpDataPlane } from './data-plane.js';

const plane = usePlane();

describe('limits', () => {
  test('headers beyond the limit are answered 431, with or without an end', async () => {
    await plane.start({ limits: { maxHeaderBytes: 1000 } });
    for (const tail of ['', '\r\n\r\n']) {
      const client = await plane.connect();
      client.send(`POST ${PATH} HTTP/1.1\r\nHost: test\r\nX: ${'a'.repeat(1000)}${tail}`);
      const response = await client.response();
      expect(response.status).toBe(431);
      expect(response.body.toString()).toContain('request headers exceed the limit of 1000 bytes. Use --http-max-header-size');
    }
  });

  test('more headers than the limit are answered 431', async () => {
    await plane.start({ limits: { maxHeaderCount: 4 } });
    const client = await plane.connect();
    client.send(infer(1, { a: '1', b: '2' }));
    expect(await idOf(client)).toBe('1');
    client.send(infer(1, { a: '1', b: '2', c: '3' }));
    const response = await client.response();
    expect(response.status).toBe(431);
    expect(response.body.toString()).toContain('request has 5 headers, the limit is 4. Use --http-max-header-count');
  });

  test('a body beyond the limit is answered before it is sent', async () => {
    await plane.start({ limits: { maxInputBytes: 1000 } });
    const client = await plane.connect();
    client.send(`POST ${PATH} HTTP/1.1\r\nHost: test\r\nContent-Length: 1001\r\n\r\n`);
    const response = await client.response();
    expect(response.status).toBe(413);
    expect(response.body.toString()).toContain('request body size of 1001 bytes exceeds the maximum allowed input size of 1000 bytes');
    expect(response.headers.connection).toBe('close');
  });

  test('a large body to a model that takes no request is passed over, not kept, and the connection goes on', async () => {
    await plane.start();
    const client = await plane.connect();
    void plane.server.service.drain();
    const large = post(PATH, `{"id":"1","parameters":{"pad":"${'x'.repeat(100_000)}"}}`);
    client.send(large.subarray(0, 50_000));
    await until(() => plane.server.plane.connectionCount === 1);
    client.send(large.subarray(50_000, -1));
    client.send(Buffer.concat([large.subarray(-1), infer(2)]));
    const [first, second] = [await client.response(), await client.response()];
    expect([first.status, first.headers['retry-after'], first.headers.connection]).toEqual([503, '1', undefined]);
    expect(first.body.toString()).toContain('Server is stopping');
    expect(second.status).toBe(503);
    expect(plane.server.plane.bufferedBytes).toBe(0);
  });

  test('a model that is not there is told once the large body has come', async () => {
    await plane.start();
    const client = await plane.connect();
    client.send(post('/v2/models/nobody/infer', 'x'.repeat(200_000)));
    const response = await client.response();
    expect(response.status).toBe(404);
    expect(response.body.toString()).toContain("unknown model: 'nobody'");
    client.send(infer(1));
    expect(await idOf(client)).toBe('1');
  });

  test('the same for a chunked body that grows beyond the limit', async () => {
    await plane.start({ limits: { maxInputBytes: 1000 } });
    const client = await plane.connect();
    client.send(`POST ${PATH} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${'a'.repeat(1001)}\r\n0\r\n\r\n`);
    const response = await client.response();
    expect(response.status).toBe(413);
    expect(response.body.toString()).toContain('request body size of 1001 bytes exceeds');
  });

  test('bodies together beyond the budget are refused with a time to come back; room is made by answers and by leaving', async () => {
    await plane.start({ auto: false, limits: { maxBufferedBytes: 150_000 } });
    const head = (length: number): string => `POST ${PATH} HTTP/1.1\r\nHost: test\r\nContent-Length: ${length}\r\n\r\n`;
    const holder = await plane.connect();
    holder.send(head(100_000));
    const refused = await plane.connect();
    await until(() => plane.server.plane.connectionCount === 2);
    refused.send(head(100_000));
    const response = await refused.response();
    expect([response.status, response.headers['retry-after']]).toEqual([429, '1']);
    await refused.closed();
    holder.destroy();
    await until(() => plane.server.plane.connectionCount === 0);
    const next = await plane.connect();
    next.send(Buffer.concat([Buffer.from(head(100_000)), Buffer.alloc(100_000, ' ')]));
    expect((await next.response()).status).toBe(400);
  });

  test('chunked bodies and inflated ones take from the same budget and give back', async () => {
    await plane.start({ auto: false, limits: { maxBufferedBytes: 150_000 } });
    const spaces = (bytes: number): Buffer => Buffer.concat([Buffer.from(body(1)), Buffer.alloc(bytes, ' ')]);
    const chunk = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
    const chunkedHead = `POST ${PATH} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const inflated = gzipSync(spaces(100_000));
    const holder = await plane.connect();
    holder.send(Buffer.concat([Buffer.from(chunkedHead), chunk(spaces(100_000)), Buffer.from('0\r\n\r\n')]));
    await until(() => plane.server.queue.enqueued.length === 1);
    for (const refused of [
      Buffer.concat([Buffer.from(chunkedHead), chunk(spaces(100_000))]),
      post(PATH, inflated, { 'Content-Encoding': 'gzip' }),
    ]) {
      const client = await plane.connect();
      client.send(refused);
      const response = await client.response();
      expect([response.status, response.headers['retry-after']]).toEqual([429, '1']);
    }
    plane.server.answerNext();
    expect(await idOf(holder)).toBe('1');
    const next = await plane.connect();
    next.send(post(PATH, inflated, { 'Content-Encoding': 'gzip' }));
    await until(() => plane.server.queue.enqueued.length === 2);
    plane.server.answerNext();
    expect(await idOf(next)).toBe('1');
  });

  test('a client may grant less time than the server, on either way in', async () => {
    await plane.start({ auto: false });
    const client = await plane.connect();
    const behind = await plane.connect();
    client.send(infer(1, { 'X-Request-Timeout-Ms': '250' }));
    behind.send(chunked(1).toString().replace('Host: test', 'Host: test\r\nX-Request-Timeout-Ms: 250'));
    await until(() => plane.server.queue.enqueued.length === 2);
    plane.server.serviceClock.advance(250_000);
    for (const each of [client, behind]) {
      const response = await each.response();
      expect(response.status).toBe(504);
      expect(response.body.toString()).toContain('was not answered within 0.25 s, the limit set by the header x-request-timeout-ms');
    }
    expect(plane.server.queue.cancelled).toHaveLength(2);
    client.send(infer(1, { 'X-Request-Timeout-Ms': '0' }));
    expect((await client.response()).status).toBe(400);
  });

  test('connections beyond the limit are dropped', async () => {
    await plane.start({ limits: { maxConnections: 1 } });
    const first = await plane.connect();
    first.send(infer(1));
    expect(await idOf(first)).toBe('1');
    const second = await plane.connect();
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
    await plane.start({ clock });
    const client = await plane.connect();
    client.send(bytes);
    await until(() => plane.server.plane.server.listening && plane.server.plane.connectionCount === 1);
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
    await plane.start({ clock, auto: false });
    const idle = await plane.connect();
    const busy = await plane.connect();
    busy.send(infer(1));
    await until(() => plane.server.queue.enqueued.length === 1);
    clock.advance(80 * S);
    expect(await idle.closed()).toBe('');
    plane.server.answerNext();
    expect(await idOf(busy)).toBe('1');
  });
});

describe('time on the handed-over path', () => {
  test('node:http enforces its own header time-out though its server never listens', async () => {
    await plane.start();
    const behind = createServer({ headersTimeout: 50, requestTimeout: 100, connectionsCheckingInterval: 10 });
    const other = createHttpDataPlane({
      inferHandler: plane.server.service,
      catalog: catalogOf(),
      fallbackServer: behind,
      logger: createLogger(SILENT),
    });
    const { port } = await other.listen('127.0.0.1', 0);
    const client = await RawClient.connect(port);
    client.send('GET /slow HTTP/1.1\r\nHost: te');
    expect((await client.response()).status).toBe(408);
    await client.closed();
    await other.close(0);
    behind.close();
  });
});

describe('leaving and closing', () => {
  test.each(['destroy', 'half-close'])('a client that leaves by %s cancels its requests', async (way) => {
    await plane.start({ auto: false });
    const client = await plane.connect();
    client.send(Buffer.concat([infer(1), infer(2)]));
    await until(() => plane.server.queue.enqueued.length === 2);
    if (way === 'destroy') client.destroy();
    else client.socket.end();
    await until(() => plane.server.queue.cancelled.length === 2);
    expect(plane.server.service.unanswered).toBe(0);
  });

  test('the same on the handed-over path', async () => {
    await plane.start({ auto: false });
    const client = await plane.connect();
    client.send(chunked(1));
    await until(() => plane.server.queue.enqueued.length === 1);
    client.destroy();
    await until(() => plane.server.queue.cancelled.length === 1);
  });

  test('close ends idle connections, answers what runs, and leaves no socket', async () => {
    await plane.start({ auto: false });
    const idle = await plane.connect();
    const idleBehind = await plane.connect();
    idleBehind.send(LIVE);
    expect((await idleBehind.response()).status).toBe(200);
    const busy = await plane.connect();
    busy.send(infer(1));
    await until(() => plane.server.queue.enqueued.length === 1);
    const closed = plane.server.plane.close(60_000);
    expect(await idle.closed()).toBe('');
    await idleBehind.closed();
    plane.server.answerNext();
    const response = await busy.response();
    expect([response.status, response.headers.connection]).toEqual([200, 'close']);
    await busy.closed();
    await closed;
    expect(plane.server.plane.connectionCount).toBe(0);
  });

  test('a taken port rejects', async () => {
    await plane.start();
    const other = await startTestServer();
    await expect(other.plane.listen('127.0.0.1', plane.server.port)).rejects.toThrow();
    await other.close();
  });

  test('closing what never listened resolves', async () => {
    await plane.start();
    const { service } = plane.server;
    const idle = createHttpDataPlane({
      inferHandler: service,
      catalog: catalogOf(),
      fallbackServer: createServer(),
      logger: createLogger(SILENT),
    });
    await expect(idle.close()).resolves.toBe(0);
  });

  test('a client that takes nothing of its reply is cut', async () => {
    const clock = new FakeClock();
    await plane.start({ clock, limits: { stallTimeoutS: 0.05 } });
    const client = await plane.connect();
    client.socket.pause();
    const json =
      '{"inputs":[{"name":"INPUT0","datatype":"BYTES","shape":[1,1],"parameters":{"binary_data_size":16000004}}],"parameters":{"binary_data_output":true}}';
    const data = Buffer.alloc(16_000_004);
    data.writeUInt32LE(16_000_000);
    client.send(
      post('/v2/models/identity_bytes_var/infer', Buffer.concat([Buffer.from(json), data]), {
        'Inference-Header-Content-Length': String(json.length),
      }),
    );
    await until(() => plane.server.queue.enqueued.length === 1);
    await until(() => {
      clock.advance(1_000_000);
      return plane.server.plane.connectionCount === 0;
    });
  });

  test('a client that does not read is not buffered for without end', async () => {
    await plane.start();
    const client = await plane.connect();
    client.socket.pause();
    const json =
      '{"parameters":{"binary_data_output":true},"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,250000],"parameters":{"binary_data_size":1000000}}]}';
    const request = post('/v2/models/identity_var/infer', Buffer.concat([Buffer.from(json), Buffer.alloc(1_000_000)]), {
      'Inference-Header-Content-Length': String(json.length),
    });
    for (let i = 0; i < 30; i++) client.send(request);
    // The server stops reading once its replies are stuck; then the client's own writes are stuck, too.
    let seen = -1;
    await until(() => {
      const before = seen;
      seen = plane.server.queue.enqueued.length;
      return seen > 0 && seen === before && client.socket.writableLength > 1_000_000;
    });
    expect(plane.server.queue.enqueued.length).toBeLessThan(30);
    client.socket.resume();
    for (let i = 0; i < 30; i++) expect((await client.response()).status).toBe(200);
    await once(client.socket.end(), 'close');
  });
});
