/**
 * An infer handler behind the quota of one key: charges rows before a request is handed on, and counts it as in flight
 * until its final frame, its cancel or its refusal. Invariant: whatever is taken is given back exactly once.
 */
import type { InferRequest, ModelCatalog, ReplyFrame } from '@paceline/protocol';
import type { InferCall, InferHandler } from '../infer/infer-service.js';
import type { TimeLimit } from '../infer/time-limit.js';
import type { Quota } from './quota.js';

export interface Meter {
  readonly quota: Quota;
  readonly catalog: ModelCatalog;
  /** Takes from `quota`. @throws ServingError that names the key, where it does not give */
  takeRows(rows: number): void;
}

export class MeteredInfer implements InferHandler {
  constructor(
    private readonly base: InferHandler,
    private readonly meter: Meter,
  ) {}

  infer(request: InferRequest, onReply: (frame: ReplyFrame) => void, limit?: TimeLimit): InferCall {
    const { meter } = this;
    const rows = rowsOf(request, meter.catalog);
    meter.takeRows(rows);
    let open = true;
    const end = (unusedRows: number): void => {
      if (open) meter.quota.giveBack(unusedRows);
      open = false;
    };
    let call: InferCall;
    try {
      call = this.base.infer(
        request,
        (frame) => {
          if (frame.final) end(0);
          onReply(frame);
        },
        limit,
      );
    } catch (error) {
      end(rows);
      throw error;
    }
    return {
      model: call.model,
      number: call.number,
      rows: call.rows,
      cancel: () => {
        end(0);
        call.cancel();
      },
    };
  }
}

/** As the client states them; whether they are true is found out behind this. */
function rowsOf(request: InferRequest, catalog: ModelCatalog): number {
  const model = catalog.resolve(request.modelName, request.modelVersion);
  const rows = model.maxBatchSize > 0 ? request.inputs[0]?.shape[0] : 1;
  return rows !== undefined && rows >= 1 && Number.isSafeInteger(rows) ? rows : 1;
}
