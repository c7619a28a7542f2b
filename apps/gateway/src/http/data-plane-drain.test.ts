/** A data plane that drains: what was sent is answered, idle connections stay until they are closed, nobody is cut off. */
import { describe, expect, test } from '@jest/globals';
import { decodeResponse, type RawClient } from '../testing/http-client.js';
import { chunked, idOf, infer, LIVE, until, usePlane } from '../testing/plane-fixture.js';

const plane = usePlane();

/** Status and Connection header of the next response. */
async function next(client: RawClient): Promise<[number, string | undefined]> {
  const response = await client.response();
  return [response.status, response.headers.connection];
}

function drain(): void {
  void plane.server.service.drain();
  plane.server.plane.beginDrain();
}

describe('a data plane that drains', () => {
  test('finishes what runs and announces the end with it', async () => {
    await plane.start({ auto: false });
    const client = await plane.connect();
    client.send(infer(1));
    await until(() => plane.server.queue.enqueued.length === 1);
    drain();
    plane.server.answerNext();
    expect(await next(client)).toEqual([200, 'close']);
    await client.closed();
  });

  test('keeps idle connections open and refuses what comes on them, with the time to come back', async () => {
    await plane.start();
    const client = await plane.connect();
    client.send(infer(1));
    expect(await idOf(client)).toBe('1');
    drain();
    client.send(infer(2));
    const response = await client.response();
    expect([response.status, response.headers.connection, response.headers['retry-after']]).toEqual([503, 'close', '1']);
    expect(decodeResponse(response).text).toContain('Server is stopping');
    await client.closed();
  });

  test('answers everything of a pipeline and ends with its last reply only', async () => {
    await plane.start({ auto: false });
    const client = await plane.connect();
    client.send(infer(1));
    await until(() => plane.server.queue.enqueued.length === 1);
    drain();
    client.send(Buffer.concat(Array.from({ length: 200 }, (_, i) => infer(i))));
    // The pipeline has reached the machine, not yet the server, when the reply before it is ready.
    plane.server.answerNext();
    expect(await next(client)).toEqual([200, undefined]);
    for (let i = 0; i < 199; i++) expect(await next(client)).toEqual([503, undefined]);
    expect(await next(client)).toEqual([503, 'close']);
    await client.closed();
  });

  test('does the same for connections that node:http has taken over', async () => {
    await plane.start();
    const client = await plane.connect();
    client.send(LIVE);
    expect((await client.response()).status).toBe(200);
    drain();
    client.send(Buffer.concat([chunked(1), chunked(2), chunked(3)]));
    for (let i = 0; i < 2; i++) expect(await next(client)).toEqual([503, 'keep-alive']);
    expect(await next(client)).toEqual([503, 'close']);
    await client.closed();
  });

  test('a body that is under way when it begins is still read and refused', async () => {
    await plane.start();
    const client = await plane.connect();
    const request = infer(1);
    client.send(request.subarray(0, -5));
    await until(() => plane.server.plane.connectionCount === 1);
    drain();
    const closing = plane.server.plane.close(60_000);
    client.send(request.subarray(-5));
    expect(await next(client)).toEqual([503, 'close']);
    expect(await closing).toBe(0);
  });

  test('a connection that was made just before the end still gets an answer to its first request', async () => {
    await plane.start();
    const used = await plane.connect();
    used.send(infer(1));
    expect(await idOf(used)).toBe('1');
    const client = await plane.connect();
    drain();
    const closing = plane.server.plane.close(60_000);
    // By then connections at rest have been ended.
    await used.closed();
    client.send(infer(2));
    expect(await next(client)).toEqual([503, 'close']);
    expect(await closing).toBe(0);
  });

  test('leaves no connection behind a port that closes while one after the other comes', async () => {
    const COMING = 10;
    await plane.start();
    const answers: Promise<[number, string | undefined]>[] = [];
    const come = async (i: number): Promise<[number, string | undefined]> => {
      const client = await plane.connect();
      client.send(infer(i));
      return next(client);
    };
    // Each is made while the process takes the one before, so that it waits in the system when the next turn begins.
    plane.server.plane.server.on('connection', () => {
      if (answers.length < COMING) answers.push(come(answers.length));
    });
    answers.push(come(0));
    drain();
    const closing = plane.server.plane.close(60_000);
    expect(await closing).toBe(0);
    expect(await Promise.all(answers)).toEqual(Array.from({ length: COMING }, () => [503, 'close']));
  });

  test('does not wait for ever for the first request of a connection', async () => {
    await plane.start();
    const client = await plane.connect();
    await until(() => plane.server.plane.connectionCount === 1);
    expect(await plane.server.plane.close(60_000)).toBe(0);
    expect(await client.closed()).toBe('');
  });

  test('counts what it cuts when the time is over', async () => {
    await plane.start({ auto: false });
    const busy = await plane.connect();
    const idle = await plane.connect();
    busy.send(infer(1));
    await until(() => plane.server.queue.enqueued.length === 1 && plane.server.plane.connectionCount === 2);
    expect(await plane.server.plane.close(50)).toBe(1);
    expect(await busy.closed()).toBe('');
    expect(await idle.closed()).toBe('');
  });
});
