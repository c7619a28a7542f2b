/** What all instances of one loaded model version have in common. */
import type { LoadSpec } from '@paceline/worker-rpc';
import type { PoolSize } from '../hosts/placement.js';
import type { ModelBackend } from '../backend/load-backend.js';
import type { LoadMessage } from '../host-protocol/messages.js';
import { ModelTensors } from '../infer/model-tensors.js';
import { ExecuteLimit, type ExecuteLimits } from '../supervision/execute-limit.js';

export class LoadedModel {
  readonly key: string;
  readonly tensors: ModelTensors;
  /** Learned from the runs of all its instances: one that came back knows what its model takes. */
  readonly limit: ExecuteLimit;
  /** It was slow or took a host down: no sharing any more. */
  isolated = false;
  #loads = 0;

  constructor(
    readonly spec: LoadSpec,
    readonly backend: ModelBackend,
    /** The pool of hosts that it may share; undefined: none. */
    readonly size: PoolSize | undefined,
    limits: ExecuteLimits,
  ) {
    this.limit = new ExecuteLimit(limits);
    this.key = modelKey(spec.model, spec.version, spec.generation);
    this.tensors = new ModelTensors(spec);
  }

  /** What to send to the host that loads the next instance. @param device `cpu` or `gpu:0` */
  nextLoadMessage(device: string): LoadMessage {
    const { inputs, outputs } = this.spec;
    return {
      ...this.backend.loadMessage(this.#loads++, device),
      inputs: inputs.map(({ name, datatype, optional, shape, modelShape = shape }) => ({ name, datatype, optional, shape: modelShape })),
      outputs: outputs.map(({ name, datatype, shape, modelShape = shape }) => ({ name, datatype, shape: modelShape })),
    };
  }
}

export function modelKey(model: string, version: string, generation: number): string {
  return `${model}\u0000${version}\u0000${generation}`;
}
