/**
 * Requests for versions whose lane is not open here yet: after a takeover the workers may still be connecting, and a
 * gateway may know of a load before this scheduler does. They wait a while instead of being refused. Invariant: each ends
 * once: taken by its lane, refused when its time is over or there is no room, or dropped with its client.
 */
import type { Clock, Timer } from '@paceline/clock';
import { envelopeAfter, ServingError, type Envelope, type RequestRef } from '@paceline/protocol';
import type { ReplyChannel } from '@paceline/streams';

/** Bounds of one partition's room. */
export interface UnopenedLimits {
  readonly maxRequests: number;
  readonly maxBytes: number;
  readonly maxWaitUs: number;
}

export const DEFAULT_LIMITS: UnopenedLimits = { maxRequests: 4096, maxBytes: 64 * 2 ** 20, maxWaitUs: 10_000_000 };

interface Waiting {
  readonly envelope: Envelope;
  readonly bytes: number;
  readonly sinceUs: number;
  readonly untilUs: number;
}

export class UnopenedLanes {
  /** By version, then by request; in the order of arrival. */
  readonly #rooms = new Map<string, Map<string, Waiting>>();
  #size = 0;
  #bytes = 0;
  #timer: Timer | undefined;
  #dueUs = Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly replies: ReplyChannel,
    private readonly limits = DEFAULT_LIMITS,
  ) {}

  get size(): number {
    return this.#size;
  }

  /** The request waits, or is refused at once where there is no room. */
  add(envelope: Envelope): void {
    const { maxRequests, maxBytes, maxWaitUs } = this.limits;
    let bytes = 0;
    for (const { data } of envelope.inputs) bytes += data.byteLength;
    if (this.#size >= maxRequests || this.#bytes + bytes > maxBytes) return this.#refuse(envelope);
    const sinceUs = this.clock.nowUs();
    const untilUs = sinceUs + (envelope.timeoutUs > 0 ? Math.min(envelope.timeoutUs, maxWaitUs) : maxWaitUs);
    const key = versionKey(envelope.model, envelope.version);
    let room = this.#rooms.get(key);
    if (!room) this.#rooms.set(key, (room = new Map<string, Waiting>()));
    room.set(refKey(envelope.ref), { envelope, bytes, sinceUs, untilUs });
    this.#size += 1;
    this.#bytes += bytes;
    this.#arm(untilUs);
  }

  /** Whether requests wait for that version. */
  has(model: string, version: string): boolean {
    return this.#rooms.has(versionKey(model, version));
  }

  /** Takes out what waits for a version, oldest first; each one's times are shortened by its wait. */
  take(model: string, version: string): Envelope[] {
    const room = this.#rooms.get(versionKey(model, version));
    if (!room) return [];
    const nowUs = this.clock.nowUs();
    const taken: Envelope[] = [];
    for (const waiting of room.values()) {
      this.#left(waiting);
      taken.push(envelopeAfter(waiting.envelope, nowUs - waiting.sinceUs));
    }
    this.#rooms.delete(versionKey(model, version));
    return taken;
  }

  /** The client left. @returns whether the request was here */
  cancel(ref: RequestRef, model: string, version: string): boolean {
    const key = versionKey(model, version);
    const room = this.#rooms.get(key);
    const waiting = room?.get(refKey(ref));
    if (!room || !waiting) return false;
    room.delete(refKey(ref));
    if (room.size === 0) this.#rooms.delete(key);
    this.#left(waiting);
    return true;
  }

  /** Drops everything without a reply. */
  abandon(): void {
    this.#timer?.cancel();
    this.#rooms.clear();
    this.#size = 0;
    this.#bytes = 0;
  }

  #expire(): void {
    this.#dueUs = Infinity;
    const nowUs = this.clock.nowUs();
    let nextUs = Infinity;
    for (const [key, room] of this.#rooms) {
      for (const [ref, waiting] of room) {
        if (waiting.untilUs > nowUs) nextUs = Math.min(nextUs, waiting.untilUs);
        else {
          room.delete(ref);
          this.#left(waiting);
          this.#refuse(waiting.envelope);
        }
      }
      if (room.size === 0) this.#rooms.delete(key);
    }
    if (nextUs < Infinity) this.#arm(nextUs);
  }

  #arm(dueUs: number): void {
    if (dueUs >= this.#dueUs) return;
    this.#timer?.cancel();
    this.#dueUs = dueUs;
    this.#timer = this.clock.setTimer(dueUs - this.clock.nowUs(), () => this.#expire());
  }

  #left({ bytes }: Waiting): void {
    this.#size -= 1;
    this.#bytes -= bytes;
  }

  #refuse({ ref, model, version }: Envelope): void {
    const error = new ServingError(
      'UNAVAILABLE',
      `model '${model}' version ${version} is at ready state, but no worker serves it at the moment`,
      {
        reason: 'no_worker',
        retryAfterMs: 1000,
      },
    );
    this.replies.send(ref, { ok: false, final: true, error });
  }
}

const versionKey = (model: string, version: string): string => `${model}/${version}`;
const refKey = ({ gateway, number }: RequestRef): string => `${gateway}/${number}`;
