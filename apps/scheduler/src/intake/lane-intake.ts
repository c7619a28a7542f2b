/**
 * Stop 3 of the request path: takes envelopes from the request queue and hands each to the lane of its model version.
 * Owns the memory of what was seen; every envelope that it does not drop as seen gets its answer from a lane or here.
 */
import type { Envelope, RequestRef } from '@paceline/protocol';
import type { ReplyChannel, RequestIntake } from '@paceline/streams';
import { notReady } from '../batching/lane-errors.js';
import type { ModelLane } from '../batching/model-lane.js';
import { RunningElsewhere } from './running-elsewhere.js';
import { SeenRequests } from './seen-requests.js';

/** What the intake needs of the lanes. */
export interface LaneDirectory {
  /** The lane that takes requests of a version now; undefined where none is open. */
  find(model: string, version: string): ModelLane | undefined;
  /** Cancels a request wherever it is, a lane of an older generation included. */
  cancel(ref: RequestRef, model: string, version: string): void;
}

export class LaneIntake implements RequestIntake {
  /** What earlier owners have with workers. */
  readonly running = new RunningElsewhere();
  readonly #seen = new SeenRequests();

  constructor(
    private readonly lanes: LaneDirectory,
    private readonly replies: ReplyChannel,
    /** Takes over what has no open lane; absent = it is refused. */
    private readonly onUnopened?: (envelope: Envelope) => void,
  ) {}

  onEnvelope(envelope: Envelope): void {
    if (this.running.keep(envelope)) return;
    if (!this.#seen.add(envelope.ref, envelope.attempt)) return;
    const lane = this.lanes.find(envelope.model, envelope.version);
    if (lane) lane.enqueue(envelope);
    else if (this.onUnopened) this.onUnopened(envelope);
    else this.replies.send(envelope.ref, { ok: false, final: true, error: notReady(envelope.model, envelope.version) });
  }

  onCancel(ref: RequestRef, model: string, version: string): void {
    this.running.cancel(ref);
    this.lanes.cancel(ref, model, version);
  }
}
