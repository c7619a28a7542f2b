/** The control routes over HTTP, and what surrounds them: connections handed in, routes mounted beside Nest. */
import { request, type IncomingMessage } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ControlRig } from '../testing/control-rig.js';
import { createGatewayApp } from './gateway.app.js';
import { SERVED_EXTENSIONS } from './gateway.options.js';

describe('control routes', () => {
  let rig: ControlRig;
  beforeEach(async () => {
    rig = await ControlRig.start();
  });
  afterEach(() => rig.stop());

  it('answers health probes with an empty body', async () => {
    expect(await rig.call('GET', '/v2/health/live')).toMatchObject({ status: 200, body: '', headers: { 'content-type': 'text/plain' } });
    expect(await rig.call('GET', '/v2/health/ready?x=1')).toMatchObject({ status: 200, body: '' });
    rig.ready = false;
    expect(await rig.call('GET', '/v2/health/ready')).toMatchObject({ status: 400, body: '' });
    expect(await rig.call('GET', '/v2/health/live')).toMatchObject({ status: 200, body: '' });
  });

  it('describes the server', async () => {
    const reply = await rig.call('GET', '/v2');
    expect(JSON.parse(reply.body)).toEqual({ name: 'paceline', version: '1.2.3', extensions: SERVED_EXTENSIONS });
    expect(reply.headers['content-type']).toBe('application/json');
    expect((await rig.call('GET', '/v2/')).status).toBe(200);
  });

  it('describes a model', async () => {
    const text =
      '{"name":"add_sub","versions":["1"],"platform":"","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[-1,16]},{"name":"INPUT1","datatype":"INT32","shape":[-1,16]}],"outputs":[{"name":"OUTPUT0","datatype":"INT32","shape":[-1,16]},{"name":"OUTPUT1","datatype":"INT32","shape":[-1,16]}]}';
    expect((await rig.call('GET', '/v2/models/add_sub')).body).toBe(text);
    expect((await rig.call('GET', '/v2/models/add_sub/versions/1')).body).toBe(text);
    expect(JSON.parse((await rig.call('GET', '/v2/models/add_sub/config')).body)).toMatchObject({ name: 'add_sub', max_batch_size: 8 });
    expect(await rig.call('GET', '/v2/models/add_sub/ready')).toMatchObject({ status: 200, body: '' });
    expect(await rig.call('GET', '/v2/models/add_sub/versions/1/ready')).toMatchObject({ status: 200, body: '' });
    rig.healthy = false;
    expect(await rig.call('GET', '/v2/models/add_sub/ready')).toMatchObject({ status: 400, body: '{"error":"Model version not ready"}' });
  });

  it.each([
    ['GET', '/v2/models/nosuch', 404, "Request for unknown model: 'nosuch' is not found"],
    ['GET', '/v2/models/add_sub/versions/7', 404, "Request for unknown model: 'add_sub' version 7 is not found"],
    ['GET', '/v2/models/nosuch/config', 404, "Request for unknown model: 'nosuch' is not found"],
    ['GET', '/v2/models/nosuch/ready', 400, 'Model version not ready'],
    ['GET', '/v2/models/add_sub/versions/2/ready', 400, 'Model version not ready'],
    ['GET', '/v2/models/add_sub/versions/-1/ready', 404, 'Not Found'],
    ['GET', '/v2/models/add_sub/versions/abc/stats', 404, 'Not Found'],
    ['GET', '/v2/models/nosuch/stats', 400, "requested model 'nosuch' is not available"],
    ['GET', '/v2/models/add_sub/versions/7/stats', 400, "requested model version is not available for model 'add_sub'"],
    ['GET', '/v1', 404, 'Not Found'],
    ['GET', '/v2/health', 404, 'Not Found'],
    ['GET', '/v2/health/live/', 404, 'Not Found'],
    ['GET', '/v2/models', 404, 'Not Found'],
    ['GET', '/v2/models/', 404, 'Not Found'],
    ['GET', '/v2/models/add_sub/unknown', 404, 'Not Found'],
    ['GET', '/v2/models/add_sub/versions', 404, 'Not Found'],
    ['GET', '/metrics', 404, 'Not Found'],
    ['POST', '/v2/repository', 404, 'Not Found'],
    ['POST', '/v2/repository/models/add_sub', 404, 'Not Found'],
    ['POST', '/v2/repository/mine/index', 501, "'repository_name' specification is not supported"],
    ['POST', '/v2/health/ready', 405, 'Method Not Allowed'],
    ['OPTIONS', '/v2/health/live', 405, 'Method Not Allowed'],
    ['POST', '/v2', 405, 'Method Not Allowed'],
    ['DELETE', '/v2/models/add_sub', 405, 'Method Not Allowed'],
    ['GET', '/v2/models/add_sub/infer', 405, 'Method Not Allowed'],
    ['GET', '/v2/repository/index', 405, 'Method Not Allowed'],
    ['POST', '/v2/models/stats', 405, 'Method Not Allowed'],
  ] as const)('%s %s answers %i', async (method, url, status, error) => {
    const reply = await rig.call(method, url);
    expect([reply.status, JSON.parse(reply.body), reply.headers['content-type']]).toEqual([status, { error }, 'application/json']);
    if (status === 405) expect(reply.headers['allow']).toBe(method === 'GET' ? 'POST' : 'GET');
  });

  it.each(['/v2/trace/setting', '/v2/models/add_sub/trace/setting'])('says that %s is not served', async (url) => {
    for (const method of ['GET', 'POST'] as const)
      expect(await rig.call(method, url)).toMatchObject({ status: 501, body: expect.stringContaining('traces are not served') });
  });

  it('refuses HEAD as Triton does', async () => {
    expect(await rig.call('HEAD', '/v2')).toMatchObject({ status: 405, body: '' });
  });

  it('answers a path that is no valid URI with an error, not a crash', async () => {
    const reply = await rig.call('GET', '/v2/models/%zz');
    expect(reply.status).toBe(400);
    expect(Object.keys(JSON.parse(reply.body) as object)).toEqual(['error']);
  });

  it('lists statistics', async () => {
    rig.statistics.forVersion('add_sub', '1').recordSuccess(100);
    const all = JSON.parse((await rig.call('GET', '/v2/models/stats')).body) as { model_stats: unknown };
    expect(all.model_stats).toMatchObject([{ name: 'add_sub', version: '1', inference_stats: { success: { count: 1, ns: 100 } } }]);
    expect(JSON.parse((await rig.call('GET', '/v2/models/add_sub/versions/1/stats')).body)).toEqual(all);
  });

  it('lists the repository', async () => {
    expect((await rig.call('POST', '/v2/repository/index')).body).toBe(
      '[{"name":"add_sub","version":"1","state":"READY"},{"name":"never_loaded"}]',
    );
    expect((await rig.call('POST', '/v2/repository/index', { payload: '{"ready":true}' })).body).toBe(
      '[{"name":"add_sub","version":"1","state":"READY"}]',
    );
    expect(await rig.call('POST', '/v2/repository/index', { payload: '{"ready":"yes"}' })).toMatchObject({
      status: 400,
      body: JSON.stringify({ error: "Invalid value for 'ready': expected a boolean, got string" }),
    });
    expect((await rig.call('POST', '/v2/repository/index', { payload: 'x' })).body).toMatch(
      /^{"error":"failed to parse the request JSON buffer: /,
    );
    expect((await rig.call('POST', '/v2/repository/index', { payload: '[]' })).body).toBe(
      '{"error":"expected the request body to be a JSON object, got array"}',
    );
  });

  it('loads and unloads, whatever content type the client names', async () => {
    const payload = JSON.stringify({ parameters: { config: '{}', 'file:1/model.onnx': 'AAEC' } });
    for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'application/x-www-form-urlencoded' }] as Record<
      string,
      string
    >[]) {
      expect(await rig.call('POST', '/v2/repository/models/m/load', { payload, headers })).toMatchObject({ status: 200, body: '' });
    }
    expect(rig.loads).toHaveLength(3);
    expect(rig.loads[0]).toEqual(['m', { config: '{}', 'file:1/model.onnx': Buffer.from([0, 1, 2]) }]);
    expect(await rig.call('POST', '/v2/repository/models/m/load')).toMatchObject({ status: 200 });
    expect(rig.loads[3]).toEqual(['m', {}]);
    await rig.call('POST', '/v2/repository/models/m/unload');
    await rig.call('POST', '/v2/repository/models/m/unload', { payload: '{"parameters":{"unload_dependents":true}}' });
    expect(rig.unloads).toEqual([
      ['m', false],
      ['m', true],
    ]);
  });

  it.each([
    ['{"parameters":{"config":5}}', /^invalid value type for load parameter 'config', expected a string .*, got number\.$/],
    [
      '{"parameters":{"file:1/model.onnx":"&&&"}}',
      /^invalid value for load parameter 'file:1\/model\.onnx', expected the file's content in base64\.$/,
    ],
    ['{"parameters":{"foo":1}}', /^unrecognized load parameter 'foo'\.$/],
    ['{"parameters":[]}', /^expected 'parameters' to be a JSON object, got array$/],
  ])('refuses the load parameters %s', async (payload, text) => {
    const reply = await rig.call('POST', '/v2/repository/models/m/load', { payload });
    expect(reply.status).toBe(400);
    expect((JSON.parse(reply.body) as { error: string }).error).toMatch(text);
    expect(rig.loads).toEqual([]);
  });

  it('passes on what the control mode says, and keeps the text of a bug to itself', async () => {
    expect(await rig.call('POST', '/v2/repository/models/forbidden/load')).toMatchObject({
      status: 503,
      body: '{"error":"explicit model load / unload is not allowed if polling is enabled"}',
    });
    const buggy = await rig.call('POST', '/v2/repository/models/buggy/load');
    expect(buggy.status).toBe(500);
    expect(buggy.body).not.toContain('secret');
  });

  it('names both sizes of a body that is too large', async () => {
    expect(await rig.call('POST', '/v2/repository/models/m/load', { payload: 'x'.repeat(1001) })).toMatchObject({
      status: 413,
      body: '{"error":"request body of 1001 bytes exceeds the maximum allowed input size of 1000 bytes"}',
    });
  });

  it('keeps everybody but local, direct callers from changing models, and nobody from reading', async () => {
    const callers: { remoteAddress?: string; headers?: Record<string, string> }[] = [
      { remoteAddress: '10.0.0.7' },
      { headers: { host: 'models.example' } },
      { headers: { origin: 'http://localhost' } },
    ];
    for (const more of callers) {
      for (const action of ['load', 'unload']) {
        const reply = await rig.call('POST', `/v2/repository/models/m/${action}`, more);
        expect(reply.status).toBe(403);
        expect((JSON.parse(reply.body) as { error: string }).error).toMatch(
          /^model control is open only to clients on the server's own machine/,
        );
      }
      expect((await rig.call('GET', '/v2/models/add_sub', more)).status).toBe(200);
    }
    expect([rig.loads, rig.unloads]).toEqual([[], []]);
  });

  it('serves connections handed to its server, without listening', async () => {
    const front = createTcpServer((socket) => void rig.app.getHttpServer().emit('connection', socket));
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const { port } = front.address() as AddressInfo;
    try {
      const reply = await new Promise<IncomingMessage>((resolve, reject) =>
        request({ port, host: '127.0.0.1', path: '/v2/health/live', agent: false }, resolve).on('error', reject).end(),
      );
      reply.resume();
      expect(reply.statusCode).toBe(200);
      const broken = await new Promise<string>((resolve, reject) => {
        let text = '';
        const socket = connect(port, '127.0.0.1', () => socket.write('nonsense\r\n\r\n'));
        socket
          .on('data', (chunk) => (text += chunk.toString()))
          .on('close', () => resolve(text))
          .on('error', reject);
      });
      expect(broken).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*{"error":"malformed HTTP request: /);
    } finally {
      await new Promise((resolve) => front.close(resolve));
    }
  });

  it('mounts inference routes beside Nest', async () => {
    const other = await createGatewayApp({
      ...rig.options(),
      registerInferRoutes: (fastify) => void fastify.post('/v2/models/:name/infer', (_request, reply) => reply.send('inferred')),
    });
    expect((await other.inject({ method: 'POST', url: '/v2/models/m/infer', payload: '{}' })).body).toBe('inferred');
    await other.close();
  });
});
