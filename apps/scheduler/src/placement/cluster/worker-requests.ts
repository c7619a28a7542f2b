/**
 * What the placement owner asks of workers now. Invariant: about one load one worker is asked one thing at a time; who
 * asks looks again once it is answered.
 */
import { toServingError, type ServingError } from '@paceline/protocol';
import type { RemoteWorker } from '@paceline/worker-rpc';

/** What a worker was asked to do with a load. */
export type Asked = 'loading' | 'activating' | 'retiring';

interface Request {
  readonly key: string;
  readonly what: Asked;
  /** Settles when the worker has answered; never rejects. */
  readonly answer: Promise<void>;
}

export class WorkerRequests {
  /** By worker and load. */
  readonly #requests = new Map<string, Request>();

  constructor(
    private readonly worker: (id: string) => RemoteWorker | undefined,
    private readonly onAnswer: () => void,
  ) {}

  /** Does nothing where the worker is asked about that load already, or there is no connection to it. */
  ask(worker: string, key: string, what: Asked, act: (remote: RemoteWorker) => Promise<void>, failed: (error: ServingError) => void): void {
    const remote = this.worker(worker);
    const asked = at(worker, key);
    if (remote === undefined || this.#requests.has(asked)) return;
    const answer = act(remote)
      .catch((thrown: unknown) => failed(toServingError(thrown)))
      .then(() => {
        this.#requests.delete(asked);
        this.onAnswer();
      });
    this.#requests.set(asked, { key, what, answer });
  }

  /** What that worker is asked about that load. */
  of(worker: string, key: string): Asked | undefined {
    return this.#requests.get(at(worker, key))?.what;
  }

  /** How many workers are loading it. */
  loading(key: string): number {
    return [...this.#requests.values()].filter((request) => request.key === key && request.what === 'loading').length;
  }

  /** Resolves when whoever is asked about that load now has answered. */
  async answered(key: string): Promise<void> {
    await Promise.all([...this.#requests.values()].filter((request) => request.key === key).map(({ answer }) => answer));
  }
}

const at = (worker: string, key: string): string => `${worker} ${key}`;
