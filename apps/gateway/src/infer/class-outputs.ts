/** Applies the classification extension to the outputs of a reply. What cannot be ranked is refused before it is queued. */
import { classify, classSupports } from '@paceline/core';
import { ServingError, toServingError, type InferRequest, type ReplyFrame, type ServedModel } from '@paceline/protocol';

/** Classes wanted per output name, each >= 1. */
export type ClassificationPlan = ReadonlyMap<string, number>;

/** @throws ServingError INVALID_ARGUMENT for an output whose data type has no order */
export function planClassification(request: InferRequest, model: ServedModel): ClassificationPlan | undefined {
  let plan: Map<string, number> | undefined;
  if (request.outputs === undefined) return undefined;
  for (const { name, classification } of request.outputs) {
    if (classification <= 0) continue;
    const spec = model.outputs.find((output) => output.name === name);
    if (spec !== undefined && !classSupports(spec.datatype)) {
      throw new ServingError('INVALID_ARGUMENT', `class result not available for output due to unsupported type '${spec.datatype}'`, {
        reason: 'classification_unsupported',
      });
    }
    (plan ??= new Map<string, number>()).set(name, classification);
  }
  return plan;
}

/** The frame with its planned outputs ranked; an error frame where that fails. */
export function classifyOutputs(frame: Extract<ReplyFrame, { ok: true }>, plan: ClassificationPlan, model: ServedModel): ReplyFrame {
  try {
    const outputs = frame.outputs.map((output) => {
      const k = plan.get(output.name);
      return k === undefined ? output : classify(output, k, model.maxBatchSize > 0, model.labels.get(output.name));
    });
    return { ...frame, outputs };
  } catch (error) {
    return { ok: false, final: true, error: toServingError(error) };
  }
}
