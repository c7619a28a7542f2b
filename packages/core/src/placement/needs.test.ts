// What instance groups and parameters ask of the workers.
import { create } from '@bufbuild/protobuf';
import { expect, test } from '@jest/globals';
import { ModelConfigSchema, ModelInstanceGroup_Kind as Kind, type ModelInstanceGroup } from '@paceline/protocol/model-config';
import { needsOf, wantedReplicas } from './needs.js';

type Group = Partial<Pick<ModelInstanceGroup, 'kind' | 'count' | 'gpus'>>;

const needs = (...groups: readonly Group[]) => needsOf(create(ModelConfigSchema, { instanceGroup: [...groups] }), 100);

test('memory counts every instance, on a GPU model those of each GPU', () => {
  expect(needs({ kind: Kind.CPU, count: 2 }, { kind: Kind.CPU, count: 1 })).toEqual({ kind: 'cpu', devices: [], memoryBytes: 300 });
  expect(needs({ kind: Kind.GPU, count: 2, gpus: [1, 0] })).toEqual({ kind: 'gpu', devices: ['gpu:0', 'gpu:1'], memoryBytes: 400 });
  expect(needs({ kind: Kind.GPU, count: 1 }, { kind: Kind.CPU, count: 5 })).toEqual({ kind: 'gpu', devices: [], memoryBytes: 100 });
  expect(needs()).toEqual({ kind: 'cpu', devices: [], memoryBytes: 100 });
});

test('replicas are all workers, unless the configuration says how many', () => {
  expect(wantedReplicas(create(ModelConfigSchema, {}))).toBe(Infinity);
  expect(wantedReplicas(create(ModelConfigSchema, { parameters: { replicas: { stringValue: '2' } } }))).toBe(2);
});
