/**
 * Sends every member of a batch its part of the result. All outputs are cut before the first reply goes out, so that a
 * result that cannot be cut answers nobody.
 */
import type { Clock } from '@paceline/clock';
import type { ReplyChannel } from '@paceline/streams';
import type { Batch } from '@paceline/worker-rpc';
import type { CopyCounter } from './copy-counter.js';
import type { ModelTensors } from './model-tensors.js';
import { scatter, type BatchOutputs } from './scatter.js';

/** Where the time of a batch went, nanoseconds. */
export interface ComputeStages {
  /** From when the host was free for it until its run began: gathering, and the way to the host and back. */
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

export interface Delivery {
  readonly tensors: ModelTensors;
  readonly replies: ReplyChannel;
  readonly clock: Clock;
  readonly copies: CopyCounter;
  /** When the batch was given and the one before it had ended. */
  readonly beganUs: number;
  readonly arrivedUs: number;
}

/** @throws ServingError when the outputs cannot be cut into the members' rows; nobody has been answered then */
export function deliver(batch: Batch, outputs: BatchOutputs, delivery: Delivery): ComputeStages {
  const { clock, copies, arrivedUs, beganUs } = delivery;
  const members = scatter(batch, outputs, delivery.tensors);
  copies.outBytes += outputs.copiedBytes;
  const stages = {
    computeInputNs: Math.max(0, Math.round(1000 * (arrivedUs - beganUs) - outputs.inferNs - outputs.layOutNs)),
    computeInferNs: outputs.inferNs,
    computeOutputNs: Math.round(1000 * (clock.nowUs() - arrivedUs) + outputs.layOutNs),
  };
  for (let i = 0; i < members.length; i++) {
    const { ref, queueNs } = batch.members[i]!;
    const timings = { queueNs, ...stages, batchRows: batch.rows };
    delivery.replies.send(ref, { ok: true, index: 0, final: true, outputs: members[i]!, timings });
  }
  return stages;
}
