/**
 * Stop 2 of the request path: every client protocol hands its decoded request here and gets its reply here.
 * (Contract; the implementation replaces this comment's second half.)
 */
import type { InferRequest, ReplyFrame, ServedModel } from '@paceline/protocol';

/** A request under way. */
export interface InferCall {
  /** The model version that answers. */
  readonly model: ServedModel;
  /** The client left: no more frames are delivered, queued work is dropped. Idempotent; no-op once final. */
  cancel(): void;
}

export interface InferHandler {
  /**
   * Validates, enqueues and delivers frames to `onReply` (never before this returns, exactly one `final`).
   * @throws ServingError when the request is refused before it was enqueued; `onReply` is then never called.
   */
  infer(request: InferRequest, onReply: (frame: ReplyFrame) => void): InferCall;
}
