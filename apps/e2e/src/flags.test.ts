/** Flags of the model repository do what they say: seen from outside, on a server as its users run it. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { identityModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { runServerToExit, startServer, type ServerProcess } from './support/server-process.js';

const onnx = identityModel({ datatype: 'FP32', dims: [4] });

let repository: TemporaryRepository;
let server: ServerProcess | undefined;
beforeEach(() => {
  repository = temporaryModelRepository([
    { name: 'auto', versions: { 1: onnx } },
    { name: 'bare', config: 'backend: "onnxruntime"', versions: { 1: onnx } },
  ]);
});
afterEach(async () => {
  await server?.stop('SIGKILL');
  server = undefined;
  repository.remove();
});

async function get(path: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`http://${server!.http}${path}`);
  return { status: answer.status, text: await answer.text() };
}

it('--disable-auto-complete-config with --exit-on-error ends the server with every reason', async () => {
  const { code, stderr } = await runServerToExit([
    `--model-repository=${repository.root}`,
    '--http-port=0',
    '--grpc-port=0',
    '--metrics-port=0',
    '--disable-auto-complete-config',
  ]);
  expect(code).toBe(1);
  expect(stderr).toContain("model 'auto' has no config.pbtxt");
  expect(stderr).toContain("unable to load model 'bare', configuration expects 0 inputs, model provides 1");
}, 30_000);

it('--exit-on-error=false and --strict-readiness=false serve what is left, --backend-config sets the batch size', async () => {
  const flags = ['--exit-on-error=false', '--backend-config=onnxruntime,default-max-batch-size=32'];
  repository.remove();
  repository = temporaryModelRepository([
    { name: 'auto', versions: { 1: onnx } },
    { name: 'broken', config: 'max_batch_size: "x"', versions: { 1: onnx } },
  ]);
  server = await startServer([`--model-repository=${repository.root}`, ...flags]);
  expect((await get('/v2/health/ready')).status).toBe(400);
  expect((await get('/v2/models/auto/ready')).status).toBe(200);
  expect(JSON.parse((await get('/v2/models/auto/config')).text)).toMatchObject({ max_batch_size: 32 });
  await server.stop('SIGTERM');
  server = await startServer([`--model-repository=${repository.root}`, ...flags, '--strict-readiness=false']);
  expect((await get('/v2/health/ready')).status).toBe(200);
}, 30_000);
