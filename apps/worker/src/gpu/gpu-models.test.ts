// Models that ask for GPUs: where their instances go, and what is said where there is none, by the real runtime too.
import { create } from '@bufbuild/protobuf';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { ModelConfigSchema, ModelInstanceGroup_Kind as Kind, type ModelConfig } from '@paceline/protocol/model-config';
import { identityModel } from '@paceline/testkit';
import type { LoadSpec } from '@paceline/worker-rpc';
import { judgeBackendOptions, modelBackend } from '../backend/load-backend.js';
import { fp32 } from '../testing/samples.js';
import { WorkerFixture } from '../testing/worker-fixture.js';
import { NO_GPUS, simulatedGpus, type GpuInventory } from './gpus.js';

jest.setTimeout(60_000);

const GPU = { index: 0, memoryBytes: 8e9, name: 'NVIDIA T4' };
const ONE: GpuInventory = { gpus: [GPU], simulated: false, absence: '', tensorRt: false };
const NO_LIBRARY: GpuInventory = {
  ...NO_GPUS,
  absence: 'ONNX Runtime has no CUDA provider library here (libonnxruntime_providers_cuda.so)',
};

const onnx = (fields: Parameters<typeof create<typeof ModelConfigSchema>>[1]): ModelConfig =>
  create(ModelConfigSchema, { name: 'm', backend: 'onnxruntime', ...fields });
const specOf = (config: ModelConfig): LoadSpec => ({
  model: 'm',
  version: '1',
  generation: 1,
  config,
  modelPath: '/m',
  inputs: [],
  outputs: [],
});
const on = (gpus: GpuInventory) => ({ gpus, cpuInstanceCount: 2 });
const group = { name: 'g', kind: Kind.GPU };

describe('a plan', () => {
  test('each instance gets the provider and the number of its GPU, the others none', () => {
    const two = { ...ONE, gpus: [GPU, { ...GPU, index: 1 }], tensorRt: true };
    const config = onnx({
      instanceGroup: [group, { name: 'c', kind: Kind.CPU, count: 1 }],
      optimization: { executionAccelerators: { gpuExecutionAccelerator: [{ name: 'tensorrt' }] } },
    });
    const { instances, loadMessage } = modelBackend(specOf(config), on(two));
    const providers = instances.map(({ name, device }) => {
      const message = loadMessage(0, device);
      return [name, message.backend === 'onnxruntime' ? message.options.executionProviders : undefined];
    });
    const both = (deviceId: number) => [{ name: 'tensorrt', deviceId }, { name: 'cuda', deviceId }]; // prettier-ignore
    expect(providers).toEqual([['g_0', both(0)], ['g_1', both(1)], ['c_0', undefined]]); // prettier-ignore
  });

  test('TensorRT needs its library', () => {
    const config = onnx({
      instanceGroup: [group],
      optimization: { executionAccelerators: { gpuExecutionAccelerator: [{ name: 'tensorrt' }] } },
    });
    expect(() => modelBackend(specOf(config), on(ONE))).toThrow('no TensorRT provider library here (libonnxruntime_providers_tensorrt.so)');
  });

  test.each<[string, ModelConfig, GpuInventory, string]>([
    [
      'no library',
      onnx({ instanceGroup: [group] }),
      NO_LIBRARY,
      "instance group 'g' of model 'm' asks for a GPU, and this worker has none that ONNX Runtime can use: ONNX Runtime has no CUDA provider library here (libonnxruntime_providers_cuda.so); run it from the image for GPUs on a machine with one, or write kind: KIND_CPU",
    ],
    [
      'another GPU',
      onnx({ instanceGroup: [{ ...group, gpus: [0, 3] }] }),
      ONE,
      "instance group 'g' of model 'm' asks for GPU 3, and this worker has GPU 0 (NVIDIA T4); list those, or write kind: KIND_CPU",
    ],
    ['simulated ones', onnx({ instanceGroup: [group] }), simulatedGpus(1), 'and those of this worker are simulated'],
    [
      'a simulated model on real ones',
      create(ModelConfigSchema, { name: 'm', backend: 'simulated', instanceGroup: [group] }),
      ONE,
      '--simulated-gpus',
    ],
  ])('%s: who asked, what was found, what to do', (_, config, gpus, text) => {
    expect(() => modelBackend(specOf(config), on(gpus))).toThrow(text);
    const judged = judgeBackendOptions(config, on(gpus));
    expect(judged.issues).toEqual([]);
    expect(judged.missing).toEqual([{ path: 'instance_group[0]', message: expect.stringContaining(text) }]);
  });
});

describe('a worker', () => {
  let fixture: WorkerFixture;
  afterEach(() => fixture.close());
  const model = {
    onnx: identityModel({ datatype: 'FP32', dims: [4] }),
    inputs: [['INPUT0', 'FP32', [-1, 4]]],
    outputs: [['OUTPUT0', 'FP32', [-1, 4]]],
  } as const;

  test.each(['binding', 'session'] as const)('says what the runtime lacks when it is asked for a GPU (%s)', async (runtimeApi) => {
    fixture = new WorkerFixture({ gpus: ONE, runtimeApi });
    const spec = fixture.spec('m', model);
    const load = fixture.worker.load({
      ...spec,
      config: { ...spec.config, instanceGroup: onnx({ instanceGroup: [group] }).instanceGroup },
    });
    await expect(load).rejects.toMatchObject({ code: 'UNAVAILABLE', reason: 'gpu_unusable' });
    await expect(load).rejects.toThrow(
      /^could not load the model with cuda on GPU 0: onnx runtime error 1: .*Failed to load shared library/,
    );
    await expect(load).rejects.toThrow(/\((libcu\w+\.so\.\d+|libonnxruntime_providers_cuda\.so): cannot open shared object file/);
  });

  test('runs simulated models on simulated GPUs, each instance in a host of its own, and says which', async () => {
    fixture = new WorkerFixture({ gpus: simulatedGpus(2), dedicatedHosts: 0 });
    const spec = fixture.spec('m', model);
    const config = create(ModelConfigSchema, { name: 'm', backend: 'simulated', maxBatchSize: 8, instanceGroup: [group] });
    const report = await fixture.worker.load({ ...spec, config, modelPath: '' });
    expect(report).toMatchObject({ instances: ['g_0', 'g_1'], devices: ['gpu:0', 'gpu:1'] });
    expect(new Set(fixture.worker.hostPids()).size).toBe(2);
    const member = fixture.member([fp32('INPUT0', [1, 4], [1, 2, 3, 4])], ['OUTPUT0']);
    expect(await fixture.run(spec, [member], 'g_1')).toMatchObject({ outcome: 'ok' });
  });

  test('leaves AUTO on the processor where there is no GPU, and names no devices', async () => {
    fixture = new WorkerFixture({ cpuInstanceCount: 2 });
    const spec = fixture.spec('m', model);
    const report = await fixture.worker.load({
      ...spec,
      config: { ...spec.config, instanceGroup: onnx({ instanceGroup: [{ name: 'a' }] }).instanceGroup },
    });
    expect(report.instances).toEqual(['a_0', 'a_1']);
    expect(report.devices).toBeUndefined();
  });
});
