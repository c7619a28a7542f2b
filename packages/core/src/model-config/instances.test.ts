// Which instances a worker starts, and where: by kind, list and count of the groups, and the GPUs it has.
import { create } from '@bufbuild/protobuf';
import { describe, expect, test } from '@jest/globals';
import { ModelConfigSchema, ModelInstanceGroup_Kind as Kind, type ModelInstanceGroup } from '@paceline/protocol/model-config';
import { gpuOf, gpusUsed, planInstances } from './instances.js';
import { normaliseInstanceGroups } from './normalise.js';

type Group = Partial<Pick<ModelInstanceGroup, 'name' | 'kind' | 'count' | 'gpus'>>;

const configOf = (groups: readonly Group[]) => create(ModelConfigSchema, { name: 'm', instanceGroup: [...groups] });

function plan(gpus: readonly number[], ...groups: readonly Group[]): string[] {
  const { instances, missing } = planInstances(configOf(groups), { gpus, cpuInstanceCount: 2 });
  expect(missing).toEqual([]);
  return instances.map(({ name, device }) => `${name}@${device}`);
}

describe('instances', () => {
  test('without groups there is one on the processor', () => {
    expect(plan([0])).toEqual(['m_0@cpu']);
  });

  test('a GPU group has its count on each GPU it lists, or on all', () => {
    expect(plan([0, 1, 2], { name: 'g', kind: Kind.GPU, count: 2, gpus: [2, 0] })).toEqual([
      'g_0@gpu:2',
      'g_1@gpu:0',
      'g_2@gpu:2',
      'g_3@gpu:0',
    ]);
    expect(plan([0, 1], { kind: Kind.GPU })).toEqual(['m_0_0@gpu:0', 'm_0_1@gpu:1']);
  });

  test('AUTO is a GPU where there is one, else the processor with its own default count', () => {
    expect(plan([3], { name: 'a' })).toEqual(['a_0@gpu:3']);
    expect(plan([], { name: 'a' })).toEqual(['a_0@cpu', 'a_1@cpu']);
    expect(plan([], { name: 'a', count: 1 })).toEqual(['a_0@cpu']);
  });

  test('KIND_MODEL leaves it to ONNX Runtime, which takes the processor, once', () => {
    expect(plan([0], { name: 'x', kind: Kind.MODEL })).toEqual(['x_0@cpu']);
  });

  test('groups of several kinds stand side by side', () => {
    expect(plan([0], { name: 'g', kind: Kind.GPU }, { name: 'c', kind: Kind.CPU, count: 1 })).toEqual(['g_0@gpu:0', 'c_0@cpu']);
  });

  test('what is missing is named by group and number', () => {
    const config = configOf([{ name: 'g', kind: Kind.GPU, gpus: [0, 7, 7] }, { kind: Kind.CPU }, { gpus: [9] }]);
    expect(planInstances(config, { gpus: [0], cpuInstanceCount: 1 }).missing).toEqual([
      { index: 0, group: 'g', gpu: 7 },
      { index: 2, group: 'm_2', gpu: 9 },
    ]);
    const any = planInstances(configOf([{ name: 'g', kind: Kind.GPU }]), { gpus: [], cpuInstanceCount: 1 });
    expect(any).toEqual({ instances: [], missing: [{ index: 0, group: 'g', gpu: undefined }] });
  });

  test('GPUs that a load uses, and their numbers', () => {
    expect(gpusUsed(configOf([{ kind: Kind.GPU, gpus: [2, 1] }, { kind: Kind.AUTO }]), [0])).toEqual([0, 1, 2]);
    expect(gpusUsed(configOf([{ kind: Kind.CPU }, { kind: Kind.AUTO }]), [])).toEqual([]);
    expect([gpuOf('gpu:12'), gpuOf('cpu')]).toEqual([12, undefined]);
  });
});

describe('normalised groups', () => {
  const normalised = (gpus: readonly number[] | 'by-worker' | undefined, ...groups: readonly Group[]) => {
    const config = configOf(groups);
    normaliseInstanceGroups(config, { cpuInstanceCount: 2, ...(gpus !== undefined && { gpus }) });
    return config.instanceGroup.map((group) => [Kind[group.kind], group.count, group.gpus]);
  };

  test.each<[string, readonly number[] | 'by-worker' | undefined, Group, [string, number, number[]]]>([
    ['AUTO without GPUs', undefined, {}, ['CPU', 2, []]],
    ['AUTO with GPUs', [0, 1], {}, ['GPU', 1, [0, 1]]],
    ['AUTO where each worker decides', 'by-worker', {}, ['AUTO', 0, []]],
    ['AUTO with a list', undefined, { gpus: [5] }, ['GPU', 1, [5]]],
    ['GPU without a list', [4], { kind: Kind.GPU, count: 3 }, ['GPU', 3, [4]]],
    ['GPU where each worker has its own', 'by-worker', { kind: Kind.GPU }, ['GPU', 1, []]],
    ['MODEL', [0], { kind: Kind.MODEL }, ['MODEL', 1, []]],
    ['CPU', [0], { kind: Kind.CPU }, ['CPU', 2, []]],
  ])('%s', (_, gpus, group, expected) => {
    expect(normalised(gpus, group)).toEqual([expected]);
  });

  test('a plan over normalised groups is the plan over those that a worker decides', () => {
    for (const gpus of [[], [0], [0, 1]]) {
      for (const group of [{}, { count: 2 }, { kind: Kind.CPU }, { kind: Kind.MODEL }] as Group[]) {
        const planned = (known: readonly number[] | 'by-worker') => {
          const config = configOf([group]);
          normaliseInstanceGroups(config, { cpuInstanceCount: 2, gpus: known });
          return planInstances(config, { gpus, cpuInstanceCount: 2 });
        };
        expect(planned('by-worker')).toEqual(planned(gpus));
      }
    }
  });
});
