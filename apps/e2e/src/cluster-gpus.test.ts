/**
 * A cluster whose workers simulate GPUs: models that share one take turns on it whatever scheduler they belong to, and those
 * that no worker can run are told apart from those that wait.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { identityModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { startCluster, type ClusterProcess } from './support/cluster-process.js';

const ALPHA_MS = 100;
const WORKERS = 2;
const REQUESTS = 12;

const simulated = (name: string, group: string) => ({
  name,
  config: `backend: "simulated" max_batch_size: 1
input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }
${group}
parameters { key: "simulated_alpha_ms" value { string_value: "${ALPHA_MS}" } }`,
  versions: { '1': {} },
});

describe('a cluster with simulated GPUs, one a worker', () => {
  let repository: TemporaryRepository;
  let cluster: ClusterProcess;
  let base: string;

  beforeAll(async () => {
    repository = temporaryModelRepository([
      simulated('a', 'instance_group { kind: KIND_GPU }'),
      simulated('b', 'instance_group { kind: KIND_GPU gpus: [ 0 ] }'),
      simulated('auto', ''),
      simulated('absent', 'instance_group { kind: KIND_GPU gpus: [ 5 ] }'),
      {
        name: 'real',
        config: 'instance_group { kind: KIND_GPU }',
        versions: { '1': identityModel({ datatype: 'FP32', dims: [2] }) },
      },
    ]);
    const counts = ['--gateways=1', '--schedulers=2', `--workers=${WORKERS}`, '--simulated-gpus=1'];
    const models = ['--model-control-mode=explicit', '--load-model=a', '--load-model=b', '--load-model=auto'];
    cluster = await startCluster([`--model-repository=${repository.root}`, ...counts, ...models]);
    base = `http://${cluster.http[0]}/v2`;
  }, 90_000);
  afterAll(async () => {
    await cluster?.stop('SIGKILL');
    repository.remove();
  }, 60_000);

  async function infer(model: string): Promise<void> {
    const body = JSON.stringify({ inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 2], data: [1, 2] }] });
    const response = await fetch(`${base}/models/${model}/infer`, { method: 'POST', body });
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"data":[1.0,2.0]')]);
  }

  async function load(model: string): Promise<string> {
    const response = await fetch(`${base}/repository/models/${model}/load`, { method: 'POST' });
    expect(response.status).toBeGreaterThanOrEqual(400);
    return response.text();
  }

  it('runs no more batches at a time than there are GPUs, over all models on them', async () => {
    const models = ['a', 'b', 'auto'];
    const startedMs = performance.now();
    await Promise.all(Array.from({ length: REQUESTS }, (_, i) => infer(models[i % models.length]!)));
    // With an accelerator for each instance it would take a third of that.
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual((REQUESTS / WORKERS) * ALPHA_MS);
  }, 60_000);

  it('says that each worker decides for a model without a kind, and keeps what others say', async () => {
    const groups = async (model: string): Promise<unknown> => {
      const response = await fetch(`${base}/models/${model}/config`);
      return ((await response.json()) as { instance_group: unknown }).instance_group;
    };
    expect(await groups('auto')).toMatchObject([{ kind: 'KIND_AUTO', gpus: [] }]);
    expect(await groups('b')).toMatchObject([{ kind: 'KIND_GPU', count: 1, gpus: [0] }]);
  });

  it('refuses a GPU that no worker has, and one that is only simulated', async () => {
    expect(await load('absent')).toContain(
      'no worker has the devices that its instance groups name (gpu:5); run one from the image for GPUs',
    );
    expect(await load('real')).toContain('those of this worker are simulated, which runs simulated models alone');
  }, 90_000);
});
