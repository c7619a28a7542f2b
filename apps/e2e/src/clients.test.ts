/** Unchanged tritonclient against a real server: the protocol as its users speak it. */
import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { FIXTURE_MODELS } from './support/fixture-models.js';
import { preparePython, runPytest } from './support/python.js';
import { startServer, type ServerProcess } from './support/server-process.js';

describe('tritonclient', () => {
  let repository: TemporaryRepository;

  beforeAll(async () => {
    repository = temporaryModelRepository(FIXTURE_MODELS);
    await preparePython();
  }, 300_000);

  afterAll(() => repository.remove());

  async function withServer(flags: readonly string[], check: (server: ServerProcess) => Promise<void>): Promise<void> {
    const server = await startServer([`--model-repository=${repository.root}`, ...flags]);
    try {
      await check(server);
    } finally {
      await server.stop();
    }
  }

  it('infers, batches and reads metadata over HTTP and gRPC', async () => {
    await withServer(['--exit-on-error=false', '--strict-readiness=false'], async (server) => {
      const { code, output } = await runPytest('test_clients.py', server);
      if (code !== 0) throw new Error(output);
    });
  }, 120_000);

  it('loads and unloads in explicit mode', async () => {
    await withServer(['--model-control-mode=explicit', '--load-model=identity_fp32'], async (server) => {
      const { code, output } = await runPytest('test_control.py', server);
      if (code !== 0) throw new Error(output);
    });
  }, 120_000);
});
