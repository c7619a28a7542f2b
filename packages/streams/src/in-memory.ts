/** Both ports inside one process: plain calls, nothing copied. Frames for an unknown gateway are dropped. */
import type { Envelope, ReplyFrame, RequestRef } from '@paceline/protocol';
import type { ReplyChannel, RequestIntake, RequestQueue } from './ports.js';

export type ReplyListener = (number: number, frame: ReplyFrame) => void;

export class InMemoryStreams implements RequestQueue, ReplyChannel {
  #intake: RequestIntake | undefined;
  readonly #gateways = new Map<string, ReplyListener>();

  /** Joins the scheduler. Requests enqueued before it are a wiring bug and throw. */
  attachIntake(intake: RequestIntake): void {
    this.#intake = intake;
  }

  attachGateway(gateway: string, listener: ReplyListener): void {
    this.#gateways.set(gateway, listener);
  }

  enqueue(envelope: Envelope): void {
    if (!this.#intake) throw new Error('request enqueued before a scheduler was attached. This is a bug.');
    this.#intake.onEnvelope(envelope);
  }

  cancel(ref: RequestRef, model: string, version: string): void {
    this.#intake?.onCancel(ref, model, version);
  }

  /** Nothing is kept here. */
  forget(): void {
    // Requests reach the intake within `enqueue`.
  }

  send(ref: RequestRef, frame: ReplyFrame): void {
    this.#gateways.get(ref.gateway)?.(ref.number, frame);
  }
}
