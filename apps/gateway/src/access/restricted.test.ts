/** Restricted APIs and CORS at the doors. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { AccessRig } from '../testing/access-rig.js';
import { row } from '../testing/grpc-harness.js';
import { post, RawClient, type RawResponse } from '../testing/http-client.js';
import { AccessPolicy, type AccessOptions } from './access-policy.js';

const BODY = JSON.stringify({ inputs: ['INPUT0', 'INPUT1'].map((name) => ({ name, datatype: 'INT32', shape: [1, 16], data: row })) });
const INFER = '/v2/models/add_sub/infer';

type Headers = Readonly<Record<string, string>>;

let rig: AccessRig;
const start = async (options: Partial<AccessOptions>): Promise<void> => {
  const all: AccessOptions = { keys: undefined, restrictedHttp: [], restrictedGrpc: [], corsOrigins: [], ...options };
  rig = await AccessRig.start({ access: () => new AccessPolicy(all) });
};
afterEach(() => rig.stop());

async function send(bytes: string | Buffer): Promise<RawResponse> {
  const client = await RawClient.connect(rig.httpPort);
  client.send(bytes);
  try {
    return await client.response();
  } finally {
    client.destroy();
  }
}
const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;

describe('restricted APIs', () => {
  beforeEach(() =>
    start({
      restrictedHttp: [{ apis: ['model-repository', 'statistics', 'infer', 'health'], key: 'admin-key', value: 'secret' }],
      restrictedGrpc: [{ apis: ['model-repository', 'statistics', 'infer'], key: 'admin-key', value: 'secret' }],
    }),
  );
  const text = `{"error":"This API is restricted, expecting header 'admin-key'"}`;

  it('answer 403 with the text of Triton without the header, on both ways in', async () => {
    for (const path of [INFER, '/v2/models/%61dd_sub/infer', '/v2/repository/index', '/v2/repository/models/nosuch/unload']) {
      for (const headers of [
        {},
        { 'admin-key': 'wrong' },
        { 'admin-key': 'secret ' + 'x' },
        { 'triton-grpc-protocol-admin-key': 'secret' },
      ] as Headers[]) {
        const { status, body } = await send(post(path, BODY, headers));
        expect([path, status, body.toString()]).toEqual([path, 403, text]);
      }
    }
    expect((await send(get('/v2/health/live'))).status).toBe(403);
    expect(rig.queue.enqueued).toEqual([]);
  });

  it('open with it, whatever its case, and leave the others open', async () => {
    expect((await send(post(INFER, BODY, { 'Admin-Key': 'secret' }))).status).toBe(200);
    expect((await send(post('/v2/models/%61dd_sub/infer', BODY, { 'ADMIN-KEY': 'secret' }))).status).toBe(200);
    expect((await send(post('/v2/repository/models/m/load', '{}', { 'admin-key': 'secret', Host: 'models.example' }))).status).toBe(200);
    expect((await send(get('/v2/models/add_sub'))).status).toBe(200);
  });

  it('in gRPC have a longer name', async () => {
    const text = "This protocol is restricted, expecting header 'triton-grpc-protocol-admin-key'";
    for (const headers of [{}, { 'triton-grpc-protocol-admin-key': 'wrong' }, { 'admin-key': 'secret' }] as Headers[])
      for (const method of ['RepositoryIndex', 'ModelStatistics', 'ModelInfer'])
        expect(await rig.grpc(method, undefined, headers)).toMatchObject({ code: 7, details: text });
    expect(await rig.grpc('RepositoryIndex', undefined, { 'triton-grpc-protocol-admin-key': 'secret' })).toBeInstanceOf(Uint8Array);
    expect(await rig.grpc('ServerMetadata')).toBeInstanceOf(Uint8Array);
  });

  it.each([
    '/V2/repository/index',
    '/v2/Repository/index',
    '/v2//repository/index',
    '//v2/repository/index',
    '/v2/repository/index/',
    '/v2/./repository/index',
    '/v2/x/../repository/index',
    '/v2/repository/%69ndex',
    '/v2/repository%2findex',
    '/v2/repository/index?x=1',
    '/v2/repository/index;x',
    '/v2/repository/index%00',
    'http://localhost/v2/repository/index',
  ])('have no second name: %s', async (path) => {
    const { status, body } = await send(post(path, '{}'));
    expect(status).toBeGreaterThanOrEqual(400);
    expect(body.toString()).not.toContain('add_sub');
  });

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE'])('%s opens nothing', async (method) => {
    for (const path of ['/v2/repository/models/add_sub/load', '/v2/repository/index', INFER]) {
      const client = await RawClient.connect(rig.httpPort);
      client.send(
        `${method} ${path} HTTP/1.1\r\nHost: h\r\nX-HTTP-Method-Override: POST\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      expect(await client.closed()).toMatch(/^HTTP\/1\.1 4\d\d /);
    }
    expect(rig.loads).toEqual([]);
  });
});

describe('web pages', () => {
  const origin = 'https://app.example';

  it('of other origins may read nothing unless they are named', async () => {
    await start({});
    const { status, headers } = await send(post(INFER, BODY, { Origin: origin }));
    expect([status, headers['access-control-allow-origin']]).toEqual([200, undefined]);
    const preflight = await send(
      `OPTIONS ${INFER} HTTP/1.1\r\nHost: h\r\nOrigin: ${origin}\r\nAccess-Control-Request-Method: POST\r\n\r\n`,
    );
    expect(preflight.status).toBeGreaterThanOrEqual(400);
    expect(preflight.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('of named origins may call and read, with keys too', async () => {
    await start({ corsOrigins: [origin], restrictedHttp: [{ apis: ['infer'], key: 'k', value: 'v' }] });
    const ask = (from: string): string =>
      `OPTIONS ${INFER} HTTP/1.1\r\nHost: h\r\nOrigin: ${from}\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: k\r\n\r\n`;
    const { status, headers } = await send(ask(origin));
    expect([status, headers['access-control-allow-origin'], headers['access-control-allow-headers']]).toEqual([204, origin, 'k']);
    expect((await send(ask('https://evil.example'))).headers['access-control-allow-origin']).toBeUndefined();
    const reply = await send(post(INFER, BODY, { Origin: origin, k: 'v' }));
    expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([200, origin]);
    expect(reply.headers['vary']).toContain('Origin');
    expect((await send(post(INFER, BODY, { Origin: origin }))).status).toBe(403);
    expect((await send(get('/v2', `Origin: ${origin}\r\n`))).headers['access-control-allow-origin']).toBe(origin);
  });

  it('may not manage, whatever they claim to be', async () => {
    await start({});
    const load = '/v2/repository/models/add_sub/load';
    for (const headers of [
      { Host: 'localhost', Origin: 'http://localhost' },
      { Host: 'localhost', Origin: 'null' },
      { Host: 'rebound.example' },
      { Host: 'localhost.evil.example' },
      { Host: '127.0.0.1.nip.io' },
      { Host: 'localhost', Forwarded: 'for=10.0.0.1' },
      { Host: 'localhost', 'X-Forwarded-For': '127.0.0.1' },
    ] as Record<string, string>[])
      expect([headers, (await send(post(load, '{}', headers))).status]).toEqual([headers, 403]);
    expect(rig.loads).toEqual([]);
    expect((await send(post(load, '{}', { Host: 'localhost', 'Content-Type': 'text/plain' }))).status).toBe(200);
  });
});
