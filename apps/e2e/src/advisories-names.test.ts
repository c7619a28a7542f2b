/**
 * Published vulnerabilities of model servers, tried against this one as a process: names that could become paths, models that lie, and who may manage. The security page says which ones
 * apply. After each, the refusal is the client's (4xx), nothing outside the repository was read or written, and the
 * server goes on.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { identityModel } from '@paceline/testkit';
import { AttackedServer, CONFIG, GOOD, INFER } from './support/attacked-server.js';
import { descendants } from './support/process-tree.js';

/** How the tables of sockets write a state and an address. */
const LISTEN = '0A';
const LOOPBACK = '0100007F';

function socketInodes(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(join(folder, fd)))?.[1] ?? [];
    } catch {
      return []; // closed while we were looking
    }
  });
}

describe('published vulnerabilities: names and management', () => {
  let server: AttackedServer;
  beforeAll(async () => {
    server = await AttackedServer.start();
  }, 60_000);
  afterAll(() => server.stop());
  afterEach(async () => {
    expect(await server.call('POST', INFER, JSON.stringify(GOOD))).toMatchObject({ status: 200 });
    expect(server.process.child.exitCode).toBeNull();
  });

  it('CVE-2023-31036: files of a load request stay in their folder', async () => {
    const before = readdirSync(server.repository.root).sort();
    const target = join(server.outside, 'written');
    const names = [
      '../../x',
      '1/../../x',
      target,
      '..%2fx',
      '..\\x',
      'C:\\x',
      '1/a\0b',
      `1/${'x'.repeat(4096)}`,
      '1/./../x',
      '',
      '.',
      '1/..',
      '1//../../x',
      '~/x',
      'file:1/x\n',
    ];
    for (const name of names) {
      const { status } = await server.load('uploaded', {
        config: '{"backend":"onnxruntime"}',
        [`file:${name}`]: Buffer.from('evil').toString('base64'),
      });
      expect([name, status >= 400 && status < 500]).toEqual([name, true]);
    }
    expect(readdirSync(server.repository.root).sort()).toEqual(before);
    expect(existsSync(target)).toBe(false);
    expect(readdirSync(server.outside)).toEqual([]);
  });

  it('CVE-2023-6831, CVE-2024-1560, CVE-2025-23316: names of models are names', async () => {
    writeFileSync(join(server.outside, 'secret'), 'secret');
    for (const name of [
      '..',
      '.',
      '..%2f..%2fetc',
      '%252e%252e%252fetc',
      '..%5c..%5cx',
      '%2fetc%2fpasswd',
      'a%00b',
      'a%0ab',
      'file:%2f%2f%2fetc',
      '$(id)',
      '`id`',
      'a;touch x',
      '-rf',
      'x'.repeat(4096),
      '__proto__',
      'constructor',
      encodeURIComponent('․․/x'),
      'http:%2f%2f169.254.169.254%2f',
    ]) {
      for (const action of ['load', 'unload']) {
        const { status } = await server.call('POST', `/v2/repository/models/${name}/${action}`, '{}');
        // Unloading what is not there is no mistake, as in Triton.
        expect([name, action, status < 500 && (action === 'unload' || status >= 400)]).toEqual([name, action, true]);
      }
      expect((await server.call('GET', `/v2/models/${name}/config`)).status).toBeGreaterThanOrEqual(400);
    }
    expect(readFileSync(join(server.outside, 'secret'), 'utf8')).toBe('secret');
  });

  it('core PR#500, CVE-2022-25882: names inside a model lead nowhere else, and say the same whether something is there', async () => {
    writeFileSync(join(server.outside, 'there.txt'), 'a\nb\n');
    const answers: string[] = [];
    for (const name of ['there.txt', 'absent.txt']) {
      const up = `../../${server.outside.split('/').at(-1)!}/${name}`;
      for (const [model, config] of [
        [
          'by_label',
          CONFIG.replace('dims: [ 4 ] }\n', `dims: [ 4 ] }\n`).replace(/output \{([^}]*)\}/, `output {$1 label_filename: "${up}" }`),
        ],
        ['by_file', `${CONFIG}default_model_filename: "${up}"\n`],
      ] as const) {
        server.writeModel(model, config);
        const { status, text } = await server.load(model);
        expect([model, status >= 400 && status < 500]).toEqual([model, true]);
        answers.push(text.replaceAll(name, 'NAME'));
        server.removeModel(model);
      }
    }
    expect(answers[0]).toBe(answers[2]);
    expect(answers[1]).toBe(answers[3]);
    expect(answers.join()).not.toContain('ENOENT');
  });

  it('a link out of the repository is not followed', async () => {
    server.writeModel('by_link', `${CONFIG.replace(/output \{([^}]*)\}/, 'output {$1 label_filename: "labels.txt" }')}`);
    symlinkSync('/etc/hostname', join(server.repository.root, 'by_link', 'labels.txt'));
    const { status, text } = await server.load('by_link');
    expect(status).toBe(400);
    expect(text).not.toContain(readFileSync('/etc/hostname', 'utf8').trim() || '/etc');
    server.removeModel('by_link');
  });

  it('CVE-2024-0087, CVE-2024-0100: no setting over the network names a file', async () => {
    const target = join(server.outside, 'log');
    for (const path of ['/v2/logging', '/v2/trace/setting', '/v2/models/identity_fp32/trace/setting'])
      for (const body of [{ log_file: target }, { trace_file: target }, { trace_config: { triton: { file: target } } }]) {
        const { status, text } = await server.call('POST', path, JSON.stringify(body));
        if (status === 200) expect(text).not.toContain(target);
        expect('log_file' in body && status === 200).toBe(false);
      }
    expect(existsSync(target)).toBe(false);
  });

  it('CVE-2026-27482, CVE-2023-43654: pages of other origins, rebound names and addresses cannot manage', async () => {
    const ask = (headers: string, method = 'POST'): Promise<string> =>
      server.raw(
        `${method} /v2/repository/models/identity_fp32/unload HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n${headers}\r\n{}`,
      );
    for (const headers of [
      'Host: evil.example\r\n',
      'Host: localhost\r\nOrigin: https://evil.example\r\n',
      'Host: localhost\r\nOrigin: null\r\n',
      'Host: localhost\r\nX-Forwarded-For: ::1\r\n',
      'Host: 169.254.169.254\r\n',
    ])
      expect([headers, await ask(headers)]).toEqual([headers, expect.stringMatching(/^HTTP\/1\.1 403 /)]);
    for (const method of ['DELETE', 'PUT', 'PATCH'])
      expect(await ask('Host: localhost\r\nX-HTTP-Method-Override: POST\r\n', method)).toMatch(/^HTTP\/1\.1 4\d\d /);
  });

  it('TensorFlow, ONNX: a model file that is broken fails alone', async () => {
    const good = identityModel({ datatype: 'FP32', dims: [4] });
    for (const [name, file] of [
      ['cut', good.slice(0, good.length >> 1)],
      ['noise', Buffer.alloc(5000, 0xa5)],
      ['empty', Buffer.alloc(0)],
      ['endless', Buffer.alloc(100_000, 0x3a)],
    ] as const) {
      server.writeModel(name, 'backend: "onnxruntime"\n', { '1/model.onnx': file });
      const { status } = await server.load(name);
      expect([name, status >= 400 && status < 500]).toEqual([name, true]);
      server.removeModel(name);
    }
  });

  it('scanners, CVE-2025-47277: three doors listen, on loopback, and nothing else of the server does', () => {
    const own = new Set([server.pid, ...descendants(server.pid)].flatMap(socketInodes));
    const listening = ['tcp', 'tcp6'].flatMap((table) =>
      readFileSync(`/proc/${server.pid}/net/${table}`, 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter((columns) => columns[3] === LISTEN && own.has(columns[9]!)),
    );
    expect(listening.map((columns) => columns[1]!.split(':')[0])).toEqual([LOOPBACK, LOOPBACK, LOOPBACK]);
  });

  it('no error tells of paths, processes or stacks of the server', () => {
    expect(server.told.length).toBeGreaterThan(50);
    const inside = [server.repository.root, process.cwd(), '/dev/shm', 'node:internal', 'node_modules', '.js:', '    at '];
    for (const text of server.told)
      for (const word of inside) if (text.includes(word)) throw new Error(`an error tells of ${word}: ${text.slice(0, 500)}`);
  });
});
