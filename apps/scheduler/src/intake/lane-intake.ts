/**
 * Stop 3 of the request path: takes envelopes from the request queue and hands each to the lane of its model version.
 * Owns the memory of what was seen; every envelope gets its answer from a lane or here, but for those that it drops: seen
 * before, with a worker already, cancelled before they came, or too old for anybody to wait for.
 */
import type { Envelope, RequestRef } from '@paceline/protocol';
import type { ReplyChannel, RequestIntake } from '@paceline/streams';
import type { RunningRequest } from '@paceline/worker-rpc';
import { notReady } from '../batching/lane-errors.js';
import type { ModelLane } from '../batching/model-lane.js';
import type { RunningElsewhere } from './running-elsewhere.js';
import { SeenRequests } from './seen-requests.js';

/** What the intake needs of the lanes. */
export interface LaneDirectory {
  /** The lane that takes requests of a version now; undefined where none is open. */
  find(model: string, version: string): ModelLane | undefined;
  /** Cancels a request wherever it is, a lane of an older generation included. */
  cancel(ref: RequestRef, model: string, version: string): void;
  /** Takes a waiting request out again, unless it is a later attempt; undefined where none such waits. */
  withdraw(request: RunningRequest): Envelope | undefined;
}

/** What happens between processes only. */
export interface ClusterIntake {
  /** Takes over what has no open lane. */
  readonly onUnopened: (envelope: Envelope) => void;
  /** What workers have already. */
  readonly running: RunningElsewhere;
  /** Requests whose cancellation has come, which may be before they do: that one travels over the control link. */
  readonly cancelled: SeenRequests;
}

export class LaneIntake implements RequestIntake {
  readonly #seen = new SeenRequests();

  constructor(
    private readonly lanes: LaneDirectory,
    private readonly replies: ReplyChannel,
    /** Absent inside one process, where nothing is handed over twice or late and what has no lane is refused. */
    private readonly cluster?: ClusterIntake,
  ) {}

  onEnvelope(envelope: Envelope): void {
    const { cluster } = this;
    if (cluster && (cluster.cancelled.has(envelope.ref) || cluster.running.keep(envelope))) return;
    if (this.#seen.add(envelope.ref, envelope.attempt)) this.#take(envelope);
  }

  onCancel(ref: RequestRef, model: string, version: string): void {
    this.cluster?.running.cancel(ref);
    this.lanes.cancel(ref, model, version);
  }

  /** A worker says that it has these: what of them waits here waits for the worker from now on. */
  onRunning(worker: string, requests: readonly RunningRequest[]): void {
    const { cluster } = this;
    if (!cluster) return;
    cluster.running.note(worker, requests);
    for (const request of requests) {
      const waiting = this.lanes.withdraw(request);
      if (waiting) cluster.running.keep(waiting);
    }
  }

  /** What it had is executed here, as far as it was handed over again. */
  onWorkerLost(worker: string): void {
    for (const envelope of this.cluster?.running.workerLost(worker) ?? []) {
      this.#seen.add(envelope.ref, envelope.attempt);
      this.#take(envelope);
    }
  }

  #take(envelope: Envelope): void {
    // Whoever is past its time has been answered by its gateway.
    if (envelope.remainingUs !== undefined && envelope.remainingUs <= 0) return;
    const lane = this.lanes.find(envelope.model, envelope.version);
    if (lane) lane.enqueue(envelope);
    else if (this.cluster) this.cluster.onUnopened(envelope);
    else this.replies.send(envelope.ref, { ok: false, final: true, error: notReady(envelope.model, envelope.version) });
  }
}
