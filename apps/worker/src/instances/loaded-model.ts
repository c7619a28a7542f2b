/** What all instances of one loaded model version have in common. */
import type { LoadSpec } from '@paceline/worker-rpc';
import type { PoolSize } from '../hosts/placement.js';
import type { LoadMessage } from '../host-protocol/messages.js';
import { ModelTensors } from '../infer/model-tensors.js';
import type { OnnxOptions } from '../onnx/session-options.js';
import { ExecuteLimit, type ExecuteLimits } from '../supervision/execute-limit.js';

export class LoadedModel {
  readonly key: string;
  readonly tensors: ModelTensors;
  readonly loadMessage: LoadMessage;
  /** Learned from the runs of all its instances: one that came back knows what its model takes. */
  readonly limit: ExecuteLimit;
  /** It was slow or took a host down: no sharing any more. */
  isolated = false;

  constructor(
    readonly spec: LoadSpec,
    onnx: OnnxOptions,
    /** The pool of hosts that it may share; undefined: none. */
    readonly size: PoolSize | undefined,
    limits: ExecuteLimits,
  ) {
    this.limit = new ExecuteLimit(limits);
    this.key = modelKey(spec.model, spec.version, spec.generation);
    this.tensors = new ModelTensors(spec);
    this.loadMessage = {
      modelPath: spec.modelPath,
      inputs: spec.inputs.map(({ name, datatype, optional }) => ({ name, datatype, optional })),
      outputs: spec.outputs.map(({ name, datatype }) => ({ name, datatype })),
      options: onnx.options,
    };
  }
}

export function modelKey(model: string, version: string, generation: number): string {
  return `${model}\u0000${version}\u0000${generation}`;
}

/** Triton's names: `<group>_<n>`; a group without a name is named after the model and its place. */
export function instanceNames(spec: LoadSpec): string[] {
  const groups = spec.config.instanceGroup;
  if (groups.length === 0) return [`${spec.model}_0`];
  return groups.flatMap((group, g) => {
    const name = group.name || `${spec.model}_${g}`;
    return Array.from({ length: Math.max(1, group.count) }, (_, n) => `${name}_${n}`);
  });
}
