/**
 * One accepted request: who waits for it, and the frames that may not be delivered yet because an earlier request of an
 * order-preserving model is unanswered. Invariant: after the final frame or a cancel nothing more is delivered.
 */
import type { ReplyFrame, ServedModel } from '@paceline/protocol';
import type { ModelStatistics } from '@paceline/telemetry';
import type { ClassificationPlan } from './class-outputs.js';
import type { ReplyOrder } from './reply-order.js';

/** Told when a client leaves. */
export interface PendingOwner {
  abandon(pending: PendingRequest): void;
}

export class PendingRequest {
  /** Frames held back, in order; undefined while there is none. */
  #held: ReplyFrame[] | undefined;
  #onReply: ((frame: ReplyFrame) => void) | undefined;

  constructor(
    readonly number: number,
    readonly clientId: string,
    readonly model: ServedModel,
    readonly statistics: ModelStatistics,
    /** On the monotonic clock. */
    readonly acceptedUs: number,
    /** Input bytes that it keeps in memory. */
    readonly bytes: number,
    /** Rows of its inputs. */
    readonly rows: number,
    readonly classes: ClassificationPlan | undefined,
    onReply: (frame: ReplyFrame) => void,
    readonly order: ReplyOrder | undefined,
    readonly owner: PendingOwner,
  ) {
    this.#onReply = onReply;
  }

  /** Closed requests have delivered their final frame or lost their client. */
  get closed(): boolean {
    return this.#onReply === undefined;
  }

  deliver(frame: ReplyFrame): void {
    if (this.order !== undefined && !this.order.isNext(this)) {
      (this.#held ??= []).push(frame);
      return;
    }
    this.#emit(frame);
    if (frame.final) this.order?.advance();
  }

  /** Delivers what was held back; called when every earlier request has been answered. */
  release(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held) for (const frame of held) this.#emit(frame);
  }

  cancel(): void {
    if (this.closed) return;
    this.owner.abandon(this);
    this.close();
  }

  /** No more frames; later requests of the same order need not wait for this one. */
  close(): void {
    this.#onReply = undefined;
    this.#held = undefined;
    this.order?.advance();
  }

  #emit(frame: ReplyFrame): void {
    const onReply = this.#onReply;
    if (frame.final) this.#onReply = undefined;
    onReply?.(frame);
  }
}
