/** A server with keys and TLS as operators run it: the key from the command, a client they already have, a key that is revoked. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { temporaryModelRepository, TestAuthority, type TemporaryRepository } from '@paceline/testkit';
import { FIXTURE_MODELS } from './support/fixture-models.js';
import { preparePython, runPytest } from './support/python.js';
import { runServerToExit, startServer, type ServerProcess } from './support/server-process.js';
import { until } from './support/until.js';

const CLI = fileURLToPath(new URL('../../cli/dist/main.js', import.meta.url));

describe('a server with keys and TLS', () => {
  let repository: TemporaryRepository;
  let authority: TestAuthority;
  let keys: string;
  let flags: string[];

  beforeAll(async () => {
    await preparePython();
    repository = temporaryModelRepository(FIXTURE_MODELS);
    authority = await TestAuthority.create();
    keys = join(authority.folder, 'keys.jsonl');
    const [server, ca] = [await authority.issue('server'), authority.certificate.certFile];
    await authority.issue('client');
    await authority.issue('stranger', false);
    flags = [
      `--model-repository=${repository.root}`,
      '--model-control-mode=explicit',
      '--load-model=identity_fp32',
      '--load-model=batcher',
      `--api-key-file=${keys}`,
      ...[`--http-tls-cert=${server.certFile}`, `--http-tls-key=${server.keyFile}`, `--http-tls-ca=${ca}`, '--http-tls-mutual'],
      ...[
        `--grpc-server-cert=${server.certFile}`,
        `--grpc-server-key=${server.keyFile}`,
        `--grpc-root-cert=${ca}`,
        '--grpc-use-ssl-mutual',
      ],
    ];
  }, 300_000);
  afterAll(() => {
    repository.remove();
    authority.remove();
  });

  const createKey = (...words: string[]): string =>
    execFileSync(process.execPath, [CLI, 'key', 'create', '--file', keys, ...words], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();

  const audit = ({ log }: ServerProcess): Record<string, unknown>[] =>
    log.filter((line) => line.includes('"audit":true')).map((line) => JSON.parse(line) as Record<string, unknown>);

  it('serves tritonclient, and forgets a key whose line is gone', async () => {
    const key = createKey('--id', 'client', '--scope', 'infer,metadata', '--model', 'identity_*');
    const scraper = createKey('--id', 'scraper', '--scope', 'metrics');
    const server = await startServer(flags);
    try {
      const { code, output } = await runPytest('test_secured.py', server, { PACELINE_KEY: key, PACELINE_TLS_FOLDER: authority.folder });
      if (code !== 0) throw new Error(output);
      const scrape = async (): Promise<number> =>
        (await fetch(`http://${server.metrics}/metrics`, { headers: { 'x-api-key': scraper } })).status;
      expect(await scrape()).toBe(200);
      const lines = readFileSync(keys, 'utf8').split('\n');
      writeFileSync(keys, lines.filter((line) => !line.includes('scraper')).join('\n'));
      await until('the file is read again', 10_000, () => audit(server).length > 0);
      expect(audit(server)).toEqual([expect.objectContaining({ action: 'keys.reload', outcome: 'ok', detail: '1 keys' })]);
      expect(await scrape()).toBe(401);
      for (const secret of [key, scraper]) expect(server.log.join('\n')).not.toContain(secret);
    } finally {
      expect(await server.stop()).toBe(0);
    }
  }, 120_000);

  it('does not start with a file that cannot be used, and says which', async () => {
    const broken = authority.write('broken.jsonl', '{"id":"a"}\n');
    for (const [flag, text] of [
      [`--api-key-file=${broken}`, `--api-key-file cannot be used: ${broken}:1: hash:`],
      ['--http-tls-key=/nonexistent', 'cannot be used: ENOENT'],
      [`--grpc-server-key=${authority.folder}/client.key`, 'key values mismatch'],
    ] as const) {
      const { code, stderr } = await runServerToExit([...flags, '--http-port=0', '--grpc-port=0', '--metrics-port=0', flag]);
      expect([flag, code, stderr]).toEqual([flag, 1, expect.stringContaining(text)]);
    }
  }, 60_000);
});
