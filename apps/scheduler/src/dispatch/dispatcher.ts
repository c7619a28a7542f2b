/**
 * Stop 5 of the request path: sends batches over the worker link and brings each completion back to the lane that sent
 * it. Invariant: a batch id is used once, and a completion reaches its lane at most once.
 */
import type { Batch, BatchCompletion, WorkerLink } from '@paceline/worker-rpc';

/** A batch that is with the worker. */
export interface Flight {
  readonly batch: Batch;
  onCompletion(completion: BatchCompletion): void;
}

/** Numbers batches, from 1. */
export class BatchIds {
  #last = 0;

  next(): number {
    return ++this.#last;
  }
}

export class Dispatcher {
  readonly #flights = new Map<number, Flight>();

  /** @param ids shared by the dispatchers of a process */
  constructor(
    private readonly link: WorkerLink,
    private readonly ids = new BatchIds(),
  ) {}

  /** An id no other batch of this process has. */
  nextId(): number {
    return this.ids.next();
  }

  execute(flight: Flight): void {
    this.#flights.set(flight.batch.id, flight);
    this.link.execute(flight.batch);
  }

  /** Completions of unknown batches (already completed) are ignored. */
  onCompletion(completion: BatchCompletion): void {
    const flight = this.#flights.get(completion.batchId);
    if (!flight) return;
    this.#flights.delete(completion.batchId);
    flight.onCompletion(completion);
  }
}
