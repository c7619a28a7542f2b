/**
 * Caps what this gateway keeps unanswered, per model and overall. Invariant: counts and bytes are what was admitted minus
 * what was released. A refusal says when trying again makes sense: the time that recent requests took.
 */
import { ServingError } from '@paceline/protocol';

export interface AdmissionLimits {
  /** Requests accepted and not yet answered. */
  readonly maxUnanswered: number;
  /** Of one model version. */
  readonly maxUnansweredPerModel: number;
  /** Their input tensors, in bytes. */
  readonly maxUnansweredBytes: number;
}

/** What is known of a lane's queue; the numbers change under the reader. */
export interface LaneLoad {
  /** Requests that wait for execution. */
  readonly queued: number;
  /** What a request that comes now will wait, microseconds; 0 = not known. */
  readonly expectedWaitUs: number;
}

/** What the gate must know of a model version. */
export interface Admitted {
  readonly name: string;
  /** Its requests that are accepted and not answered. */
  readonly unanswered: number;
  /** Its requests that wait for execution, and how many may; Infinity where only its lane can tell. */
  readonly queued: number;
  readonly maxQueued: number;
  /** Moving average, microseconds from admission to answer. */
  readonly answerUs: number;
  /** What the lane expects; 0 = not known. */
  readonly expectedWaitUs: number;
}

const UNKNOWN_MS = 1000;

export class AdmissionGate {
  #requests = 0;
  #bytes = 0;

  constructor(private readonly limits: AdmissionLimits) {}

  /**
   * Why a request would be refused whatever it says: asked before one is decoded, so that being full costs little. Returned,
   * because throwing costs as much as all the rest of a refusal.
   * @returns a RESOURCE_EXHAUSTED; undefined = its inputs decide
   */
  check(model: Admitted, prefix: string): ServingError | undefined {
    const { maxUnanswered, maxUnansweredPerModel } = this.limits;
    if (this.#requests >= maxUnanswered) {
      return refusal(
        `${prefix}${this.#requests} requests are unanswered, the limit of this server (--max-unanswered-requests)`,
        'too_many_unanswered',
        model,
      );
    }
    if (model.unanswered >= maxUnansweredPerModel) {
      return refusal(
        `${prefix}${model.unanswered} requests to model '${model.name}' are unanswered, the limit of this server for a model (--max-unanswered-requests-per-model)`,
        'too_many_unanswered_of_model',
        model,
      );
    }
    return model.queued >= model.maxQueued ? refusal(`${prefix}Exceeds maximum queue size`, 'queue_full', model) : undefined;
  }

  /** @throws ServingError RESOURCE_EXHAUSTED when a cap would be passed; nothing is counted then. */
  admit(bytes: number, model: Admitted, prefix: string): void {
    const full = this.check(model, prefix);
    if (full !== undefined) throw full;
    if (this.#bytes + bytes > this.limits.maxUnansweredBytes) {
      throw refusal(
        `${prefix}inputs of ${bytes} bytes do not fit beside the ${this.#bytes} bytes of unanswered requests, the limit of this server is ${this.limits.maxUnansweredBytes} (--max-unanswered-bytes)`,
        'too_many_unanswered_bytes',
        model,
      );
    }
    this.#requests += 1;
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#requests -= 1;
    this.#bytes -= bytes;
  }
}

function refusal(text: string, reason: string, { answerUs, expectedWaitUs }: Admitted): ServingError {
  const waitUs = expectedWaitUs === 0 ? answerUs : expectedWaitUs;
  return new ServingError('RESOURCE_EXHAUSTED', text, { reason, retryAfterMs: waitUs === 0 ? UNKNOWN_MS : Math.ceil(waitUs / 1000) });
}
