/**
 * Requests that a worker has without this owner's doing: an earlier owner of the partition sent them, or they came back
 * when the connection to the worker was cut. Whoever hands one over again has it kept here, not executed; it is executed
 * only when its worker is lost, since nobody else would know.
 */
import type { Clock } from '@paceline/clock';
import { envelopeAfter, type Envelope } from '@paceline/protocol';
import type { RunningRequest } from '@paceline/worker-rpc';

interface Running {
  readonly worker: string;
  readonly attempt: number;
  readonly notedUs: number;
  envelope: Envelope | undefined;
  keptUs: number;
}

export class RunningElsewhere {
  readonly #byGateway = new Map<string, Map<number, Running>>();

  constructor(private readonly clock: Clock) {}

  note(worker: string, requests: Iterable<RunningRequest>): void {
    for (const { ref, attempt } of requests) {
      const { gateway, number } = ref;
      let running = this.#byGateway.get(gateway);
      if (!running) this.#byGateway.set(gateway, (running = new Map<number, Running>()));
      const known = running.get(number);
      if (known && known.attempt > attempt) continue;
      running.set(number, { worker, attempt, notedUs: this.clock.nowUs(), envelope: undefined, keptUs: 0 });
    }
  }

  /** @returns whether it is running and was kept. A later attempt is not: the worker has said that the one before is lost. */
  keep(envelope: Envelope): boolean {
    if (this.#byGateway.size === 0) return false;
    const { gateway, number } = envelope.ref;
    const requests = this.#byGateway.get(gateway);
    const running = requests?.get(number);
    if (!requests || !running) return false;
    const attempt = envelope.attempt ?? 1;
    if (attempt > running.attempt) {
      requests.delete(number);
      return false;
    }
    // An attempt before the one that runs is an old entry: its successor is on its way here.
    if (attempt < running.attempt) return true;
    running.envelope = envelope;
    running.keptUs = this.clock.nowUs();
    return true;
  }

  /** The client left. */
  cancel({ gateway, number }: RunningRequest['ref']): void {
    this.#byGateway.get(gateway)?.delete(number);
  }

  /** Whatever that worker had is lost. @returns what was handed over again of it, its times shortened by the wait */
  workerLost(worker: string): Envelope[] {
    const lost: Envelope[] = [];
    for (const requests of this.#byGateway.values()) {
      for (const [number, { worker: at, envelope, keptUs }] of requests) {
        if (at !== worker) continue;
        requests.delete(number);
        if (envelope) lost.push(envelopeAfter(envelope, this.clock.nowUs() - keptUs));
      }
    }
    return lost;
  }

  /** Those noted so long ago have ended by now, one way or the other. @returns whether others are left */
  forget(ageUs: number): boolean {
    const untilUs = this.clock.nowUs() - ageUs;
    for (const [gateway, requests] of this.#byGateway) {
      for (const [number, { notedUs }] of requests) if (notedUs <= untilUs) requests.delete(number);
      if (requests.size === 0) this.#byGateway.delete(gateway);
    }
    return this.#byGateway.size > 0;
  }

  clear(): void {
    this.#byGateway.clear();
  }
}
