// Which GPUs a worker has: the driver's answer, the provider libraries, and what the environment leaves visible.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { detectGpus } from './detect-gpus.js';
import { gpuDevices, gpusFor, simulatedGpus } from './gpus.js';
import { parseNvidiaSmi } from './nvidia-smi.js';
import { visibleGpus } from './visible-gpus.js';

const TWO = `0, GPU-11111111-aaaa-bbbb-cccc-000000000000, 143771, NVIDIA H200
1, GPU-12222222-aaaa-bbbb-cccc-000000000000, 24564, NVIDIA GeForce RTX 4090
`;
const MIB = 1024 * 1024;

describe("the driver's answer", () => {
  test('one GPU a line', () => {
    expect(parseNvidiaSmi(TWO)).toEqual([
      { index: 0, uuid: 'GPU-11111111-aaaa-bbbb-cccc-000000000000', memoryBytes: 143_771 * MIB, name: 'NVIDIA H200' },
      { index: 1, uuid: 'GPU-12222222-aaaa-bbbb-cccc-000000000000', memoryBytes: 24_564 * MIB, name: 'NVIDIA GeForce RTX 4090' },
    ]);
  });

  test('memory that it does not tell, names with commas, line ends of another system, and no GPU at all', () => {
    expect(parseNvidiaSmi('3, GPU-a, [N/A], GB10, rev 2\r\n')).toEqual([{ index: 3, uuid: 'GPU-a', memoryBytes: 0, name: 'GB10, rev 2' }]);
    expect(parseNvidiaSmi('')).toEqual([]);
    expect(parseNvidiaSmi('No devices were found\n')).toEqual([]);
  });

  test.each(['0, 143771, NVIDIA H200', 'x, GPU-a, 1, N', '0, GPU-a, 1', 'Unable to determine the device handle'])(
    '%j is refused',
    (line) => {
      expect(() => parseNvidiaSmi(line)).toThrow(`nvidia-smi answered '${line}'`);
    },
  );
});

describe('what CUDA shows', () => {
  const installed = parseNvidiaSmi(TWO);
  test.each<[string | undefined, number[]]>([
    [undefined, [143_771, 24_564]],
    ['0,1', [143_771, 24_564]],
    ['1, 0', [24_564, 143_771]],
    ['1', [24_564]],
    ['GPU-12', [24_564]],
    ['GPU-1', []],
    ['0,2,1', [143_771]],
    ['1,-1,0', [24_564]],
    ['0,0', []],
    ['0,GPU-11111111', []],
    ['', []],
    ['-1', []],
    ['MIG-5c3a', [0]],
  ])('CUDA_VISIBLE_DEVICES=%s', (list, memoryMib) => {
    const gpus = visibleGpus(installed, list === undefined ? {} : { CUDA_VISIBLE_DEVICES: list });
    expect(gpus.map(({ memoryBytes }) => memoryBytes / MIB)).toEqual(memoryMib);
    expect(gpus.map(({ index }) => index)).toEqual(memoryMib.map((_, i) => i));
  });

  test('a list for the container runtime was applied before; its words for none count', () => {
    expect(visibleGpus(installed, { NVIDIA_VISIBLE_DEVICES: '5' })).toHaveLength(2);
    expect(visibleGpus(installed, { NVIDIA_VISIBLE_DEVICES: 'all' })).toHaveLength(2);
    expect(visibleGpus(installed, { NVIDIA_VISIBLE_DEVICES: 'none' })).toEqual([]);
    expect(visibleGpus(installed, { NVIDIA_VISIBLE_DEVICES: 'void' })).toEqual([]);
  });
});

describe('detection', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'paceline-providers-'));
    writeFileSync(join(folder, 'libonnxruntime_providers_cuda.so'), '');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('with a provider and a driver', async () => {
    const found = await detectGpus({ folder, env: {}, nvidiaSmi: () => Promise.resolve(TWO) });
    expect(found).toMatchObject({ absence: '', simulated: false, tensorRt: false });
    expect(gpuDevices(found)).toEqual([
      { id: 'gpu:0', kind: 'gpu', memoryBytes: 143_771 * MIB },
      { id: 'gpu:1', kind: 'gpu', memoryBytes: 24_564 * MIB },
    ]);
    expect([gpusFor(found, 'onnxruntime'), gpusFor(found, 'simulated')]).toEqual([[0, 1], []]);
  });

  test('without the provider library the driver is not asked', async () => {
    const nvidiaSmi = jest.fn(() => Promise.resolve(TWO));
    const found = await detectGpus({ folder: tmpdir(), env: {}, nvidiaSmi });
    expect(found).toMatchObject({ gpus: [], absence: 'ONNX Runtime has no CUDA provider library here (libonnxruntime_providers_cuda.so)' });
    expect(nvidiaSmi).not.toHaveBeenCalled();
  });

  test.each<[string, Record<string, string>, () => Promise<string>, string]>([
    ['hidden', { CUDA_VISIBLE_DEVICES: '' }, () => Promise.resolve(TWO), "CUDA_VISIBLE_DEVICES is ''"],
    ['not in the list', { CUDA_VISIBLE_DEVICES: '7' }, () => Promise.resolve(TWO), "CUDA_VISIBLE_DEVICES is '7', which names none of 2"],
    ['kept from the container', { NVIDIA_VISIBLE_DEVICES: 'void' }, () => Promise.resolve(TWO), "NVIDIA_VISIBLE_DEVICES is 'void'"],
    ['none', {}, () => Promise.resolve('No devices were found'), 'nvidia-smi found no GPU'],
    ['no driver', {}, () => Promise.reject(new Error('nvidia-smi failed: no driver')), 'nvidia-smi failed: no driver'],
  ])('%s: why', async (_, env, nvidiaSmi, absence) => {
    expect(await detectGpus({ folder, env, nvidiaSmi })).toMatchObject({ gpus: [], absence });
  });

  test('simulated ones stand for real ones, for simulated models alone', async () => {
    const found = await detectGpus({ simulated: 2, folder, env: {}, nvidiaSmi: () => Promise.resolve(TWO) });
    expect(found).toEqual(simulatedGpus(2));
    expect([gpusFor(found, 'onnxruntime'), gpusFor(found, 'simulated')]).toEqual([[], [0, 1]]);
  });

  test('this machine is asked without a failure, whatever it has', async () => {
    const found = await detectGpus();
    expect(found.gpus.length > 0).toBe(found.absence === '');
  });
});
