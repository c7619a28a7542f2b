/**
 * One accepted request: who waits for it, and the frames that may not be delivered yet because an earlier request of an
 * order-preserving model is unanswered. Invariant: after the final frame or a cancel nothing more is delivered.
 */
import type { ReplyFrame, ServedModel } from '@paceline/protocol';
import type { Span } from '@paceline/telemetry';
import type { ClassificationPlan } from './class-outputs.js';
import type { Due } from './deadlines.js';
import type { ModelRoute } from './model-route.js';
import type { ReplyOrder } from './reply-order.js';
import type { Overdue } from './time-limit.js';

/** Told when a client leaves. */
export interface PendingOwner {
  abandon(pending: PendingRequest): void;
}

/** What is fixed when a request is accepted. */
export interface AcceptedRequest extends Overdue {
  readonly number: number;
  readonly model: ServedModel;
  readonly route: ModelRoute;
  /** On the monotonic clock. */
  readonly acceptedUs: number;
  readonly dueUs: number;
  /** Input bytes that it keeps in memory. */
  readonly bytes: number;
  /** Rows of its inputs. */
  readonly rows: number;
  readonly classes: ClassificationPlan | undefined;
  /** undefined = not traced. */
  readonly span: Span | undefined;
}

export class PendingRequest implements Due {
  /** Frames held back, in order; undefined while there is none. */
  #held: ReplyFrame[] | undefined;
  #onReply: ((frame: ReplyFrame) => void) | undefined;
  place = -1;

  constructor(
    readonly accepted: AcceptedRequest,
    onReply: (frame: ReplyFrame) => void,
    readonly owner: PendingOwner,
  ) {
    this.#onReply = onReply;
  }

  get number(): number {
    return this.accepted.number;
  }

  get model(): ServedModel {
    return this.accepted.model;
  }

  get rows(): number {
    return this.accepted.rows;
  }

  get dueUs(): number {
    return this.accepted.dueUs;
  }

  get order(): ReplyOrder | undefined {
    return this.accepted.route.order;
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

  /** Its time is over: its client hears so at once, whatever earlier requests it would have had to wait for. */
  expire(frame: ReplyFrame): void {
    this.#held = undefined;
    this.#emit(frame);
    this.order?.advance();
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
