/** Keys, restricted APIs and quotas at every door: both HTTP parsers, gRPC and metrics. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { create, toBinary } from '@bufbuild/protobuf';
import { FakeClock } from '@paceline/clock/testing';
import { generateApiKey, hashApiKey, keyFileLine, KEY_SCOPES, type KeyEntry } from '@paceline/config';
import { ModelInferRequestSchema, RepositoryModelLoadRequestSchema } from '@paceline/protocol/grpc';
import { AccessRig } from '../testing/access-rig.js';
import { int32, row } from '../testing/grpc-harness.js';
import { post, RawClient, type RawResponse } from '../testing/http-client.js';
import { until } from '../testing/until.js';
import { AccessPolicy } from './access-policy.js';
import { KeyFile } from './key-file.js';

const BODY = JSON.stringify({
  inputs: ['INPUT0', 'INPUT1'].map((name) => ({ name, datatype: 'INT32', shape: [1, 16], data: row })),
});
/** The same request over gRPC. */
const MESSAGE = toBinary(
  ModelInferRequestSchema,
  create(ModelInferRequestSchema, {
    modelName: 'add_sub',
    inputs: ['INPUT0', 'INPUT1'].map((name) => ({ name, datatype: 'INT32', shape: [1n, 16n] })),
    rawInputContents: [int32(...row), int32(...row)],
  }),
);
const LOAD = toBinary(RepositoryModelLoadRequestSchema, create(RepositoryModelLoadRequestSchema, { modelName: 'add_sub' }));
/** The first is read by the bare sockets, the second by node:http. */
const INFER_PATHS = ['/v2/models/add_sub/infer', '/v2/models/%61dd_sub/infer'];

const [admin, reader] = [generateApiKey(), generateApiKey()];
const entry = (id: string, key: string, more: Partial<KeyEntry> = {}): string =>
  keyFileLine({ id, hash: hashApiKey(key), scopes: [...KEY_SCOPES], models: ['*'], quota: {}, ...more });
const KEYS =
  entry('admin', admin) +
  entry('reader', reader, { scopes: ['infer', 'model-repository', 'statistics', 'metadata'], models: ['identity*'] });

let rig: AccessRig;
let folder: string;
let file: string;
let keyFile: KeyFile;
let clock: FakeClock;
/** Of the quotas and of the file's watch. */
async function startWith(keys: string): Promise<void> {
  writeFileSync(file, keys);
  rig = await AccessRig.start({
    access: (logger) => {
      keyFile = new KeyFile(file, clock, logger);
      return new AccessPolicy({ keys: () => keyFile.ring, restrictedHttp: [], restrictedGrpc: [], corsOrigins: [] });
    },
  });
}

beforeEach(() => {
  clock = new FakeClock();
  folder = mkdtempSync(join(tmpdir(), 'paceline-doors-'));
  file = join(folder, 'keys.jsonl');
});
afterEach(async () => {
  keyFile.close();
  await rig.stop();
  rmSync(folder, { recursive: true });
});

async function send(bytes: string | Buffer, port = rig.httpPort): Promise<RawResponse> {
  const client = await RawClient.connect(port);
  client.send(bytes);
  try {
    return await client.response();
  } finally {
    client.destroy();
  }
}

const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
const withKey = (key: string): Record<string, string> => ({ Authorization: `Bearer ${key}` });

describe('with a key file', () => {
  beforeEach(() => startWith(KEYS));

  it.each(INFER_PATHS)('%s needs a key that opens the model', async (path) => {
    const none = await send(post(path, BODY));
    expect([none.status, none.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    expect((await send(post(path, BODY, withKey(generateApiKey())))).status).toBe(401);
    const other = await send(post(path, BODY, withKey(reader)));
    expect([other.status, other.body.toString()]).toEqual([403, `{"error":"API key 'reader' does not open model 'add_sub'"}`]);
    expect((await send(post(path, BODY, withKey(admin)))).status).toBe(200);
    expect((await send(post(path, BODY, { 'x-api-key': admin }))).status).toBe(200);
    expect(rig.queue.enqueued).toHaveLength(2);
  });

  it('one connection may bring several keys, each counts for its own request', async () => {
    const client = await RawClient.connect(rig.httpPort);
    const path = INFER_PATHS[0]!;
    for (const headers of [withKey(admin), {}, withKey(reader), withKey(admin)]) client.send(post(path, BODY, headers));
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await client.response()).status);
    expect(statuses).toEqual([200, 401, 403, 200]);
    client.destroy();
  });

  it('the body of a caller without a key is not read', async () => {
    const client = await RawClient.connect(rig.httpPort);
    client.send('POST /v2/models/add_sub/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n{"inputs"');
    expect(await client.response()).toMatchObject({ status: 401, headers: { connection: 'close' } });
    client.destroy();
  });

  it('only liveness is open', async () => {
    expect((await send(get('/v2/health/live'))).status).toBe(200);
    for (const path of [
      '/v2',
      '/v2/',
      '/v2/health/ready',
      '/v2/models/add_sub',
      '/v2/models/add_sub/ready',
      '/v2/models/add_sub/config',
      '/v2/models/stats',
    ])
      expect([path, (await send(get(path))).status]).toEqual([path, 401]);
    expect((await send(post('/v2/repository/index', '{}'))).status).toBe(401);
    expect((await send(get('/metrics'), rig.metricsPort)).status).toBe(401);
    expect((await send(get('/metrics', `x-api-key: ${admin}\r\n`), rig.metricsPort)).status).toBe(200);
    expect((await send(get('/metrics', `x-api-key: ${reader}\r\n`), rig.metricsPort)).status).toBe(403);
  });

  it('lists show a key its own models', async () => {
    const index = async (key: string): Promise<string[]> =>
      (JSON.parse((await send(post('/v2/repository/index', '', withKey(key)))).body.toString()) as { name: string }[]).map(
        ({ name }) => name,
      );
    expect(await index(admin)).toContain('add_sub');
    const own = await index(reader);
    expect(own.length).toBeGreaterThan(5);
    expect(own.every((name) => name.startsWith('identity'))).toBe(true);
    const stats = await send(get('/v2/models/stats', `x-api-key: ${reader}\r\n`));
    expect(stats.body.toString()).not.toContain('add_sub');
    expect((await send(get('/v2/models/add_sub', `x-api-key: ${reader}\r\n`))).body.toString()).toBe(
      (await send(get('/v2/models/nosuch', `x-api-key: ${reader}\r\n`))).body.toString().replace('nosuch', 'add_sub'),
    );
    const grpcIndex = await rig.grpc('RepositoryIndex', undefined, { 'x-api-key': reader });
    expect(String(grpcIndex)).toContain('identity_fp32');
    expect(String(grpcIndex)).not.toContain('add_sub');
  });

  it('gRPC takes the same keys from metadata', async () => {
    expect(await rig.grpc('ServerLive')).toBeInstanceOf(Uint8Array);
    for (const method of ['ServerReady', 'ModelInfer', 'ModelConfig', 'RepositoryIndex', 'TraceSetting', '/grpc.health.v1.Health/Check'])
      expect(await rig.grpc(method)).toMatchObject({ code: 16, details: expect.stringContaining('needs an API key') });
    expect(await rig.grpc('ModelInfer', MESSAGE, { authorization: `Bearer ${admin}` })).toBeInstanceOf(Uint8Array);
    expect(await rig.grpc('ModelInfer', MESSAGE, { 'x-api-key': reader })).toMatchObject({
      code: 7,
      details: "API key 'reader' does not open model 'add_sub'",
    });
    expect(await rig.grpc('ModelMetadata', Buffer.from('\n\x07add_sub'), { 'x-api-key': reader })).toMatchObject({ code: 7 });
    expect(await rig.grpc('ServerReady', undefined, { 'x-api-key': reader })).toMatchObject({
      code: 7,
      details: "API key 'reader' lacks the scope 'health'",
    });
    expect(await rig.grpc('/grpc.health.v1.Health/Check', undefined, { 'x-api-key': admin })).toBeInstanceOf(Uint8Array);
  });

  it('management is for a key with its scope, from anywhere, and written down without the key', async () => {
    const load = '/v2/repository/models/add_sub/load';
    expect((await send(post(load, '{}'))).status).toBe(401);
    expect((await send(post(load, '{}', withKey(reader)))).status).toBe(403);
    expect((await send(post(load, '{}', { ...withKey(admin), Host: 'models.example', 'X-Forwarded-For': '10.0.0.1' }))).status).toBe(200);
    expect((await send(post(load, '{}', { ...withKey(admin), Origin: 'https://evil.example' }))).status).toBe(403);
    expect((await send(post(load, '{"parameters":{"x":1}}', withKey(admin)))).status).toBe(400);
    expect(await rig.grpc('RepositoryModelLoad', LOAD, { 'x-api-key': admin })).toBeInstanceOf(Uint8Array);
    expect(await rig.grpc('RepositoryModelLoad', LOAD)).toMatchObject({ code: 16 });
    expect(rig.loads.map(([name]) => name)).toEqual(['add_sub', 'add_sub']);
    await until(() => rig.audit.length === 7);
    expect(rig.audit.map(({ who, outcome, detail }) => [who, outcome, detail])).toEqual([
      ['anonymous', 'refused', '401'],
      ['key:reader', 'refused', '403'],
      ['key:admin', 'ok', '200'],
      ['key:admin', 'refused', '403'],
      ['key:admin', 'failed', '400'],
      ['key:admin', 'ok', 'OK'],
      ['anonymous', 'refused', 'UNAUTHENTICATED'],
    ]);
    expect(rig.audit.every((line) => line['action'] === 'model.load' && line['target'] !== undefined && line['peer'] !== '')).toBe(true);
    for (const key of [admin, reader]) expect(rig.logText).not.toContain(key);
  });
});

describe('quotas', () => {
  it('refuse with 429, the time to wait and RESOURCE_EXHAUSTED, on every way in', async () => {
    await startWith(entry('slow', admin, { quota: { requestsPerSecond: 4 } }));
    for (const path of INFER_PATHS) expect((await send(post(path, BODY, withKey(admin)))).status).toBe(200);
    expect(await rig.grpc('ModelInfer', MESSAGE, { 'x-api-key': admin })).toBeInstanceOf(Uint8Array);
    expect((await send(get('/v2', `x-api-key: ${admin}\r\n`))).status).toBe(200);
    for (const path of INFER_PATHS) {
      const refused = await send(post(path, BODY, withKey(admin)));
      expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
      expect(refused.body.toString()).toBe(`{"error":"API key 'slow' is over its quota of 4 requests a second"}`);
    }
    const grpc = await rig.grpc('ModelInfer', MESSAGE, { 'x-api-key': admin });
    expect(grpc).toMatchObject({ code: 8 });
    expect((grpc as { metadata: { get(name: string): unknown[] } }).metadata.get('grpc-retry-pushback-ms')).toEqual(['250']);
    clock.advance(1_000_000);
    expect((await send(post(INFER_PATHS[0]!, BODY, withKey(admin)))).status).toBe(200);
  });

  it('count rows, and what is in flight until it has ended or its client has left', async () => {
    await startWith(entry('few', admin, { quota: { inFlight: 1, rowsPerSecond: 100 } }));
    const answer = rig.queue.answer!;
    rig.queue.answer = undefined;
    const path = INFER_PATHS[0]!;
    const first = await RawClient.connect(rig.httpPort);
    first.send(post(path, BODY, withKey(admin)));
    await until(() => rig.queue.enqueued.length === 1);
    expect((await send(post(path, BODY, withKey(admin)))).body.toString()).toContain('1 requests in flight');
    expect(await rig.grpc('ModelInfer', MESSAGE, { 'x-api-key': admin })).toMatchObject({ code: 8 });
    first.destroy();
    await until(() => rig.queue.cancelled.length === 1);
    const second = await RawClient.connect(rig.httpPort);
    second.send(post(path, BODY, withKey(admin)));
    await until(() => rig.queue.enqueued.length === 2);
    answer(rig.queue.enqueued[1]!);
    expect((await second.response()).status).toBe(200);
    rig.queue.answer = answer;
    second.send(post(path, BODY, withKey(admin)));
    expect((await second.response()).status).toBe(200);
    second.destroy();
  });
});

describe('a key file that changes', () => {
  const replace = (text: string): void => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
    clock.advance(1_000_000);
  };
  const status = async (key: string): Promise<number> => (await send(post(INFER_PATHS[0]!, BODY, withKey(key)))).status;

  it('is read again: keys come and go, open connections included; a broken one changes nothing', async () => {
    await startWith(entry('admin', admin));
    const open = await RawClient.connect(rig.httpPort);
    open.send(post(INFER_PATHS[0]!, BODY, withKey(admin)));
    expect((await open.response()).status).toBe(200);
    expect(await status(reader)).toBe(401);

    replace(entry('admin', admin) + entry('reader', reader));
    await until(() => rig.audit.length === 1);
    expect(rig.audit[0]).toMatchObject({ action: 'keys.reload', outcome: 'ok', detail: '2 keys', target: 'keys.jsonl' });
    expect([await status(admin), await status(reader)]).toEqual([200, 200]);

    replace('{"id":"admin"');
    await until(() => rig.audit.length === 2);
    expect(rig.audit[1]).toMatchObject({ action: 'keys.reload', outcome: 'failed' });
    expect([await status(admin), await status(reader)]).toEqual([200, 200]);

    rmSync(file);
    clock.advance(1_000_000);
    await until(() => rig.audit.length === 3);
    expect(await status(admin)).toBe(200);

    replace(entry('reader', reader));
    await until(() => rig.audit.length === 4);
    open.send(post(INFER_PATHS[0]!, BODY, withKey(admin)));
    expect((await open.response()).status).toBe(401);
    expect([await status(admin), await status(reader)]).toEqual([401, 200]);
    open.destroy();
    for (const key of [admin, reader]) expect(rig.logText).not.toContain(key);
  });

  it('without a change it is not read, and at start a broken one is an error', async () => {
    await startWith(entry('admin', admin));
    for (let i = 0; i < 3; i++) {
      clock.advance(1_000_000);
      await status(admin);
    }
    expect(rig.audit).toEqual([]);
    writeFileSync(join(folder, 'broken'), 'nonsense\n');
    expect(() => new KeyFile(join(folder, 'broken'), clock, undefined as never)).toThrow('broken:1: expected one JSON object in this line');
    expect(() => new KeyFile(join(folder, 'absent'), clock, undefined as never)).toThrow('ENOENT');
  });
});
