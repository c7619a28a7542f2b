/** Runs in a worker thread: decodes one JSON body; the tensors it made are moved back, not copied. */
import { toServingError } from '@paceline/protocol';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { decodeJsonBody } from './decode-body.js';
import type { JsonTask, JsonTaskResult } from './json-offload.js';

const NO_TAIL = new Uint8Array(0);

/** Tells the pool which buffers to move along with the result. */
class Moved {
  constructor(
    private readonly result: JsonTaskResult,
    private readonly buffers: readonly ArrayBufferLike[],
  ) {}

  get [transferableSymbol](): readonly ArrayBufferLike[] {
    return this.buffers;
  }

  get [valueSymbol](): JsonTaskResult {
    return this.result;
  }
}

export default function decodeTask({ json, hasTail, target }: JsonTask): JsonTaskResult | ReturnType<typeof move> {
  try {
    const decoded = decodeJsonBody(Buffer.from(json.buffer, json.byteOffset, json.byteLength), hasTail ? NO_TAIL : undefined, target);
    const buffers = decoded.request.inputs.map((input) => input.data.buffer);
    return move(new Moved({ ok: true, decoded }, buffers));
  } catch (thrown) {
    const { code, message, reason, httpStatus } = toServingError(thrown);
    return { ok: false, code, message, reason, httpStatus };
  }
}
