/**
 * Requests that an earlier owner of the partition had sent to workers when it was taken over. Whoever hands one over again
 * has it kept here, not executed; it is executed only when its worker is lost, since nobody else would know.
 */
import type { Envelope, RequestRef } from '@paceline/protocol';

interface Running {
  readonly worker: string;
  envelope: Envelope | undefined;
}

export class RunningElsewhere {
  readonly #byGateway = new Map<string, Map<number, Running>>();

  note(worker: string, refs: Iterable<RequestRef>): void {
    for (const { gateway, number } of refs) {
      let running = this.#byGateway.get(gateway);
      if (!running) this.#byGateway.set(gateway, (running = new Map<number, Running>()));
      running.set(number, { worker, envelope: undefined });
    }
  }

  /** @returns whether it is running and was kept. A later attempt is not: the worker has said that the one before is lost. */
  keep(envelope: Envelope): boolean {
    if (this.#byGateway.size === 0) return false;
    const { gateway, number } = envelope.ref;
    const running = this.#byGateway.get(gateway)?.get(number);
    if (!running) return false;
    if ((envelope.attempt ?? 1) > 1) {
      this.#byGateway.get(gateway)?.delete(number);
      return false;
    }
    running.envelope = envelope;
    return true;
  }

  /** The client left. */
  cancel({ gateway, number }: RequestRef): void {
    this.#byGateway.get(gateway)?.delete(number);
  }

  /** Whatever that worker had is lost. @returns what was handed over again of it */
  workerLost(worker: string): Envelope[] {
    const lost: Envelope[] = [];
    for (const running of this.#byGateway.values()) {
      for (const [number, { worker: at, envelope }] of running) {
        if (at !== worker) continue;
        running.delete(number);
        if (envelope) lost.push(envelope);
      }
    }
    return lost;
  }

  /** They have ended by now, one way or the other. */
  clear(): void {
    this.#byGateway.clear();
  }
}
