/**
 * The batches that are with workers: sends each with the right of its partition's epoch, brings its completion back to
 * the lanes that sent it, and ends at once what was with a worker that can no longer be reached. Invariant: each batch
 * ends exactly once.
 */
import { ServingError, type Epoch } from '@paceline/protocol';
import { STALE_EPOCH, type Batch, type BatchCompletion, type RemoteWorker, type WorkerLink } from '@paceline/worker-rpc';
import type { AnsweredLately } from './answered-lately.js';
import { NO_LOADS } from './no-loads.js';

/** Whoever sends batches for a partition. */
export interface FlightSender {
  readonly partition: number;
  readonly epoch: Epoch;
  onCompletion(completion: BatchCompletion): void;
  /** A worker knows another epoch of the partition; said before the completion of what it refused. */
  onStaleEpoch(): void;
}

/** What is known of the workers. */
export interface ReachableWorkers {
  find(worker: string): RemoteWorker | undefined;
  /** A worker that has an instance of that load, for a batch that names none; the least busy one. */
  anyWith(batch: Batch): string | undefined;
}

interface RemoteFlight {
  readonly batch: Batch;
  readonly sender: FlightSender;
  started: boolean;
}

export class RemoteFlights {
  readonly #byWorker = new Map<string, Map<number, RemoteFlight>>();
  /** Quarantined batches without a worker that could take them. */
  #homeless: { readonly batch: Batch; readonly sender: FlightSender }[] = [];
  #clearWaiters: { readonly worker: string; readonly isDone: () => boolean; readonly done: () => void }[] = [];

  constructor(
    private readonly workers: ReachableWorkers,
    private readonly answered: AnsweredLately,
  ) {}

  /** The worker link of one partition under one epoch, for its lanes; instances are named `<worker>/<local name>`. */
  linkOf(sender: FlightSender): WorkerLink {
    return { ...NO_LOADS, execute: (batch) => this.#execute(batch, sender) };
  }

  /** How many batches are with a worker. */
  count(worker: string): number {
    return this.#byWorker.get(worker)?.size ?? 0;
  }

  /** How many are with workers. */
  get size(): number {
    let sum = this.#homeless.length;
    for (const flights of this.#byWorker.values()) sum += flights.size;
    return sum;
  }

  /** Calls back when nothing is with any worker, each time it comes to that. */
  onIdle: () => void = () => undefined;

  /** Calls back once no batch of that load is with the worker; at once where none is. */
  whenClear(worker: string, model: string, version: string, generation: number, done: () => void): void {
    const isDone = (): boolean => {
      for (const { batch } of this.#byWorker.get(worker)?.values() ?? []) {
        if (batch.generation === generation && batch.model === model && batch.version === version) return false;
      }
      return true;
    };
    if (isDone()) done();
    else this.#clearWaiters.push({ worker, isDone, done });
  }

  onStarted(worker: string, batchId: number): void {
    const flight = this.#byWorker.get(worker)?.get(batchId);
    if (flight) flight.started = true;
  }

  onCompletion(worker: string, completion: BatchCompletion): void {
    const flights = this.#byWorker.get(worker);
    const flight = flights?.get(completion.batchId);
    if (!flights || !flight) return;
    flights.delete(completion.batchId);
    if (completion.outcome === 'ok') this.answered.note(worker, flight.batch.members);
    if (completion.outcome === 'refused' && completion.error?.reason === STALE_EPOCH) flight.sender.onStaleEpoch();
    flight.sender.onCompletion(completion);
    this.#tellClear(worker);
  }

  /** Ends everything that was with the worker, as begun where it is known to have begun. */
  onWorkerLost(worker: string, reason: string): void {
    const flights = this.#byWorker.get(worker);
    this.#byWorker.delete(worker);
    const error = new ServingError('UNAVAILABLE', `the worker that had the request cannot be reached: ${reason}`, {
      reason: 'worker_lost',
      retryAfterMs: 1000,
    });
    for (const { batch, sender, started } of flights?.values() ?? []) {
      sender.onCompletion({ ...NO_TIMES, batchId: batch.id, instance: batch.instance, outcome: 'lost', started, error });
    }
    this.#tellClear(worker);
  }

  /** More workers can be reached, or have instances: what waits for one may go. */
  retryHomeless(): void {
    for (const { batch, sender } of this.#homeless.splice(0)) this.#execute(batch, sender);
  }

  /** Forgets the batches that found no worker yet. */
  dropHomeless(sender: FlightSender): void {
    const dropped = this.#homeless.filter((homeless) => homeless.sender === sender);
    this.#homeless = this.#homeless.filter((homeless) => homeless.sender !== sender);
    for (const { batch } of dropped) {
      sender.onCompletion({ ...NO_TIMES, batchId: batch.id, instance: batch.instance, outcome: 'lost', started: false, error: undefined });
    }
  }

  #execute(batch: Batch, sender: FlightSender): void {
    const slash = batch.instance.indexOf('/');
    const worker = batch.quarantine ? this.workers.anyWith(batch) : batch.instance.slice(0, slash);
    if (worker === undefined) {
      this.#homeless.push({ batch, sender });
      return;
    }
    const remote = this.workers.find(worker);
    let flights = this.#byWorker.get(worker);
    if (!flights) this.#byWorker.set(worker, (flights = new Map<number, RemoteFlight>()));
    flights.set(batch.id, { batch, sender, started: false });
    const local = batch.quarantine ? batch : { ...batch, instance: batch.instance.slice(slash + 1) };
    if (remote) remote.execute({ partition: sender.partition, epoch: sender.epoch, batch: local });
    else this.onWorkerLost(worker, 'it is gone');
  }

  #tellClear(worker: string): void {
    if (this.count(worker) === 0 && this.size === 0) this.onIdle();
    if (this.#clearWaiters.length === 0) return;
    const ready = this.#clearWaiters.filter((waiter) => waiter.worker === worker && waiter.isDone());
    if (ready.length === 0) return;
    this.#clearWaiters = this.#clearWaiters.filter((waiter) => !ready.includes(waiter));
    for (const { done } of ready) done();
  }
}

const NO_TIMES = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 } as const;
