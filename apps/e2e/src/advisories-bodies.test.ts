/**
 * Published vulnerabilities of model servers, tried against this one as a process: bodies, heads and numbers that ask for more than they are. The security page says which ones
 * apply. After each, the refusal is the client's (4xx), nothing outside the repository was read or written, and the
 * server goes on.
 */
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { AttackedServer, CONFIG, GOOD, INFER, MAX_INPUT_BYTES } from './support/attacked-server.js';
import { treeBytes } from './support/process-tree.js';

describe('published vulnerabilities: bodies', () => {
  let server: AttackedServer;
  beforeAll(async () => {
    server = await AttackedServer.start();
  }, 60_000);
  afterAll(() => server.stop());
  afterEach(async () => {
    expect(await server.call('POST', INFER, JSON.stringify(GOOD))).toMatchObject({ status: 200 });
    expect(server.process.child.exitCode).toBeNull();
  });

  it('log injection: a name or id begins no line of its own', async () => {
    const evil = 'x\n{"level":"fatal","msg":"forged"}';
    await server.call('POST', INFER, JSON.stringify({ ...GOOD, id: evil }));
    await server.call('POST', INFER, JSON.stringify({ id: evil, inputs: [] }));
    await server.call('POST', `/v2/repository/models/${encodeURIComponent(evil)}/load`, '{}');
    await server.call('GET', `/v2/models/${encodeURIComponent(evil)}`);
    for (const line of server.process.log.filter((text) => text.includes('forged')))
      expect((JSON.parse(line) as { msg: string }).msg).not.toBe('forged');
  });

  it('CVE-2024-0088, CVE-2025-23319 chain: shared memory is not served, under any name', async () => {
    for (const name of ['x', 'paceline_internal', '..%2fx', '%2fdev%2fshm%2fx'])
      for (const kind of ['systemsharedmemory', 'cudasharedmemory'])
        expect((await server.call('POST', `/v2/${kind}/region/${name}/register`, '{"key":"/x","offset":0,"byte_size":64}')).status).toBe(
          404,
        );
    const body = {
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 4], parameters: { shared_memory_region: 'x', shared_memory_byte_size: 16 } }],
    };
    const { status } = await server.call('POST', INFER, JSON.stringify(body));
    expect([400, 501]).toContain(status);
  });

  it('CVE-2025-23310, CVE-2025-23311: a body in chunks of one byte costs its bytes', async () => {
    const size = 300_000;
    const chunks = Buffer.from('1\r\n \r\n'.repeat(size) + '0\r\n\r\n');
    const head = `POST ${INFER} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    expect(await server.raw(head, chunks)).toMatch(/^HTTP\/1\.1 400 /);
    const many = Array.from({ length: 100_000 }, (_, i) => `x${i}: 1\r\n`).join('');
    expect(await server.raw(`POST ${INFER} HTTP/1.1\r\nHost: localhost\r\n${many}\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
    expect(await server.raw(`GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${many}\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
  });

  it('server PR#7787, CVE-2025-33201: every route has a limit that holds before anything is read', async () => {
    const over = Buffer.alloc(MAX_INPUT_BYTES + 1, ' ');
    for (const path of [INFER, '/v2/repository/index', '/v2/repository/models/identity_fp32/load'])
      for (const framing of [`Content-Length: ${over.length}`, 'Transfer-Encoding: chunked']) {
        const size = framing.startsWith('T') ? `${over.length.toString(16)}\r\n` : '';
        const answer = await server.raw(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${framing}\r\n\r\n${size}`, over);
        expect([path, framing, answer]).toEqual([path, framing, expect.stringMatching(/^HTTP\/1\.1 413 /)]);
      }
    for (const length of ['2147483649', '9223372036854775808', '18446744073709551616', '99999999999999999999999'])
      for (const path of [INFER, '/v2/repository/models/identity_fp32/load'])
        expect([
          length,
          await server.raw(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\nx`),
        ]).toEqual([length, expect.stringMatching(/^HTTP\/1\.1 4(?:00|13) /)]);
  });

  it('server PR#8570: what unpacks to more than the limit is not unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024, ' '));
    const before = treeBytes(server.pid);
    for (const path of [INFER, '/v2/models/%69dentity_fp32/infer'])
      expect((await server.call('POST', path, bomb, { 'Content-Encoding': 'gzip' })).status).toBe(413);
    expect((await server.call('POST', INFER, bomb, { 'Content-Encoding': 'zstd' })).status).toBe(415);
    expect(
      (await server.call('POST', '/v2/repository/models/identity_fp32/load', gzipSync('{}'), { 'Content-Encoding': 'gzip' })).status,
    ).toBeLessThan(500);
    expect(treeBytes(server.pid) - before).toBeLessThan(100_000_000);
  });

  it('CVE-2026-24146, CVE-2026-24173: counts and products are limited', async () => {
    const input = GOOD.inputs[0]!;
    const many = <Item>(item: (i: number) => Item): Item[] => Array.from({ length: 50_000 }, (_, i) => item(i));
    const cases: Record<string, unknown>[] = [
      { ...GOOD, outputs: many((i) => ({ name: `O${i}` })) },
      { ...GOOD, outputs: many(() => ({ name: 'OUTPUT0' })) },
      { inputs: many((i) => ({ ...input, name: `I${i}` })) },
      { inputs: [{ ...input, shape: many(() => 1) }] },
      ...[
        [4294967296, 4294967296],
        [2 ** 53, 2],
        [-1, 4],
        [1, 4, 0],
        [2147483648, 2],
      ].map((shape) => ({ inputs: [{ ...input, shape }] })),
    ];
    for (const body of cases) {
      const { status } = await server.call('POST', INFER, JSON.stringify(body));
      expect([JSON.stringify(body).slice(0, 80), status >= 400 && status < 500]).toEqual([expect.any(String), true]);
    }
  });

  it('CVE-2025-0649: depth is limited wherever JSON or text is read', async () => {
    const deep = (n: number): string => '['.repeat(n) + ']'.repeat(n);
    const objects = '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000);
    for (const body of [
      `{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,4],"data":${deep(100_000)}}]}`,
      `{"parameters":${objects},"inputs":[]}`,
      deep(100_000),
    ])
      expect((await server.call('POST', INFER, body)).status).toBe(400);
    expect((await server.call('POST', '/v2/repository/models/identity_fp32/load', `{"parameters":${objects}}`)).status).toBe(400);
    expect((await server.load('identity_fp32', { config: objects })).status).toBe(400);
    server.writeModel('deep', `${CONFIG}parameters ${'{ value '.repeat(20_000)}`);
    expect((await server.load('deep')).status).toBe(400);
    server.removeModel('deep');
  });

  it('CVE-2022-1471 and prototype pollution: names are data', async () => {
    const polluted = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    const bodies = [
      `{"parameters":${polluted},"inputs":${JSON.stringify(GOOD.inputs)}}`,
      `{"__proto__":{"inputs":[]},"inputs":[{"name":"__proto__","datatype":"FP32","shape":[1,4],"data":[1,2,3,4],"parameters":${polluted}}]}`,
      `{"inputs":[{"name":"constructor","datatype":"__proto__","shape":[1,4],"data":[1,2,3,4]}]}`,
    ];
    for (const body of bodies) expect((await server.call('POST', INFER, body)).status).toBeLessThan(500);
    for (const body of [`{"parameters":${polluted}}`, '{"parameters":{"config":"{\\"__proto__\\":{\\"backend\\":\\"x\\"}}"}}'])
      expect((await server.call('POST', '/v2/repository/models/identity_fp32/load', body)).status).toBe(400);
    const metadata = await server.call('GET', '/v2/models/identity_fp32');
    expect(metadata.text).not.toContain('polluted');
  });

  it('request smuggling: a request whose end can be read in two ways is no request', async () => {
    const inner = `POST /v2/repository/models/identity_fp32/unload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`;
    const line = `POST ${INFER} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`;
    for (const [fields, body] of [
      [`Content-Length: ${inner.length + 5}\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n${inner}`],
      [`Transfer-Encoding: chunked\r\nContent-Length: 3\r\n`, `0\r\n\r\n${inner}`],
      [`Content-Length: 0\r\nContent-Length: ${inner.length}\r\n`, inner],
      [`Content-Length: 0, ${inner.length}\r\n`, inner],
      [`Content-Length: +0\r\n`, inner],
      [`Content-Length : 0\r\n`, inner],
      [`Transfer-Encoding: xchunked\r\n`, inner],
      [`Transfer-Encoding: chunked, identity\r\n`, inner],
      [` Content-Length: 0\r\n`, inner],
      [`X: a\nContent-Length: 0\r\n`, inner],
      [`X: a\rContent-Length: 0\r\n`, inner],
      [`Transfer-Encoding: chunked\r\n`, `0;\n\r\n\r\n${inner}`],
    ] as const) {
      const answers = (await server.raw(`${line}${fields}\r\n${body}`)).match(/HTTP\/1\.1 \d+/g) ?? [];
      expect([fields, answers]).toEqual([fields, [expect.stringMatching(/ 4\d\d$/)]]);
    }
  });

  it('CVE-2025-27520, GHSA-fh2c-86xm-pm2x: no content type chooses another reader', async () => {
    for (const type of [
      'application/vnd.bentoml+pickle',
      'application/python-pickle',
      'application/x-msgpack',
      'multipart/form-data; boundary=x',
      'application/x-www-form-urlencoded',
    ])
      for (const path of [INFER, '/v2/repository/models/identity_fp32/load', '/v2/repository/index']) {
        const { status } = await server.call('POST', path, '\x80\x04cos\nsystem\n(S"id"\ntR.', { 'Content-Type': type });
        expect([type, path, status]).toEqual([type, path, 400]);
      }
  });

  it('CVE-2025-48956: odd parameters of a request are its own fault', async () => {
    for (const parameters of [
      [],
      'x',
      { priority: 'high' },
      { timeout: -1 },
      { timeout: 1e300 },
      { sequence_id: {} },
      { binary_data_output: 'yes' },
      { a: { b: [1] } },
    ]) {
      const { status } = await server.call('POST', INFER, JSON.stringify({ ...GOOD, parameters }));
      expect([JSON.stringify(parameters), status < 500]).toEqual([JSON.stringify(parameters), true]);
    }
  });

  it('no error tells of paths, processes or stacks of the server', () => {
    expect(server.told.length).toBeGreaterThan(30);
    const inside = [server.repository.root, process.cwd(), '/dev/shm', 'node:internal', 'node_modules', '.js:', '    at '];
    for (const text of server.told)
      for (const word of inside) if (text.includes(word)) throw new Error(`an error tells of ${word}: ${text.slice(0, 500)}`);
  });
});
