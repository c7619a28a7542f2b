/**
 * The two ports between a gateway and the lanes. The in-memory adapter joins them inside one process; the contract suite
 * in ./testing states what every adapter promises.
 */
import type { Envelope, ReplyFrame, RequestRef } from '@paceline/protocol';

/** Gateway side. Fire and forget: the gateway holds a request until it has answered it, so nothing here is durable. */
export interface RequestQueue {
  /** Hands a request over. The lane answers through the {@link ReplyChannel}, refusals included. */
  enqueue(envelope: Envelope): void;
  /** The client left or its deadline passed: drop it if it still waits, tell the worker if it runs. No reply follows. */
  cancel(ref: RequestRef, model: string, version: string): void;
  /** It has been answered, or cancelled before: the queue may forget what it kept to send it again. */
  forget(ref: RequestRef): void;
}

/** Scheduler side of {@link RequestQueue}. */
export interface RequestIntake {
  onEnvelope(envelope: Envelope): void;
  onCancel(ref: RequestRef, model: string, version: string): void;
}

/** Carries reply frames back to the gateway named in the ref; sent by lanes (refusals) and workers (results). */
export interface ReplyChannel {
  send(ref: RequestRef, frame: ReplyFrame): void;
}
