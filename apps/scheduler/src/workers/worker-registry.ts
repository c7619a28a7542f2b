/**
 * The workers this scheduler is connected to: dials those that membership names, keeps the picture of their loads, and
 * ends the batches of those that are lost. Invariant: listeners hear of a lost worker's instances before its batches end,
 * so that nothing is sent there again.
 */
import type { Clock } from '@paceline/clock';
import type { Member, RequestAttempt } from '@paceline/protocol';
import type {
  Batch,
  BatchCompletion,
  ConnectWorker,
  InstanceEvent,
  ModelAnnouncement,
  RemoteWorker,
  RemoteWorkerListener,
  WorkerHello,
} from '@paceline/worker-rpc';
import { DeviceCredits } from '../batching/device-credits.js';
import { AnsweredLately } from './answered-lately.js';
import { Loads, type Load } from './loads.js';
import { RemoteFlights, type ReachableWorkers } from './remote-flights.js';

export type WorkersObserver = Pick<RemoteWorkerListener, 'onUp' | 'onDown' | 'onModel' | 'onModelGone' | 'onInstance' | 'onDraining'>;

/** Told after the picture has changed. */
export interface WorkersListener {
  /** Holders of that load, or their instances or states, are others than before. */
  onLoadChanged(load: Load): void;
  /** The worker can be given batches; `hello.epochs` says what it knows of partitions. */
  onWorkerUp(remote: RemoteWorker, hello: WorkerHello): void;
  /** It cannot be reached any more; its batches have ended as lost. */
  onWorkerLost(worker: string): void;
  /** These of that gateway's were answered by a worker that was lost soon after; the answers may be lost with it. */
  onAnswersInDoubt(gateway: string, requests: readonly RequestAttempt[]): void;
}

interface Dialled {
  readonly address: string;
  /** Membership names it. */
  named: boolean;
  readonly remote: RemoteWorker;
  up: boolean;
  draining: boolean;
}

export class WorkerRegistry implements RemoteWorkerListener, ReachableWorkers {
  readonly loads = new Loads();
  readonly flights: RemoteFlights;
  readonly devices = new DeviceCredits();
  readonly #workers = new Map<string, Dialled>();
  readonly #answered: AnsweredLately;

  /** @param observer hears everything a worker says, after this has taken it in: placement */
  constructor(
    clock: Clock,
    private readonly connect: ConnectWorker,
    private readonly listener: WorkersListener,
    private readonly observer?: WorkersObserver,
  ) {
    this.#answered = new AnsweredLately(clock);
    this.flights = new RemoteFlights(this, this.#answered);
  }

  /**
   * Dials new workers and leaves those that are not named any more, but for a connection that stands: membership forgets
   * everybody when its store loses its data, and a worker that goes cuts the connection itself. Other roles are ignored.
   */
  setMembers(members: readonly Member[]): void {
    const workers = new Map(members.filter(({ role }) => role === 'worker').map((member) => [member.id, member]));
    for (const [id, dialled] of this.#workers) {
      dialled.named = workers.has(id);
      this.#leaveUnnamed(id, dialled);
    }
    for (const { id, address, draining } of workers.values()) {
      const known = this.#workers.get(id);
      if (known) {
        if (draining && !known.draining) this.#drain(id);
      } else this.#workers.set(id, { address, remote: this.connect(id, address, this), named: true, up: false, draining });
    }
  }

  /** Those that can be reached now, and those that membership names beside them. */
  *named(): Generator<{ readonly worker: string; readonly remote: RemoteWorker; readonly up: boolean }> {
    for (const [worker, { remote, up }] of this.#workers) yield { worker, remote, up };
  }

  get connectedCount(): number {
    let count = 0;
    for (const { up } of this.#workers.values()) if (up) count += 1;
    return count;
  }

  /** The connection to that worker, whether or not it is up. */
  dialled(worker: string): RemoteWorker | undefined {
    return this.#workers.get(worker)?.remote;
  }

  find(worker: string): RemoteWorker | undefined {
    const remote = this.dialled(worker);
    return remote && this.#workers.get(worker)?.up ? remote : undefined;
  }

  /** Whether it may be given new batches. */
  isOpen(worker: string): boolean {
    const dialled = this.#workers.get(worker);
    return dialled !== undefined && dialled.up && !dialled.draining;
  }

  anyWith({ model, version, generation }: Batch): string | undefined {
    let best: string | undefined;
    for (const { worker, ready } of this.loads.find(model, version, generation)?.holders.values() ?? []) {
      if (ready.size === 0 || !this.isOpen(worker)) continue;
      if (best === undefined || this.flights.count(worker) < this.flights.count(best)) best = worker;
    }
    return best;
  }

  async close(): Promise<void> {
    // They live on, and so do their answers.
    this.#answered.clear();
    await Promise.all([...this.#workers.values()].map(({ remote }) => remote.close()));
  }

  onUp(hello: WorkerHello): void {
    const dialled = this.#workers.get(hello.worker);
    if (!dialled) return;
    // What it had before this connection is lost to us, and what it announced may be gone.
    this.#lost(hello.worker, 'its connection was new');
    dialled.up = true;
    dialled.draining ||= hello.draining;
    this.listener.onWorkerUp(dialled.remote, hello);
    const loads = hello.models.map((model) => this.loads.announce(hello.worker, model));
    this.observer?.onUp(hello);
    for (const load of loads) this.#changed(load);
  }

  onDown(worker: string, reason: string): void {
    this.#lost(worker, reason);
    this.observer?.onDown(worker, reason);
    const dialled = this.#workers.get(worker);
    if (dialled) this.#leaveUnnamed(worker, dialled);
  }

  onModel(worker: string, model: ModelAnnouncement): void {
    const load = this.loads.announce(worker, model);
    this.observer?.onModel(worker, model);
    this.#changed(load);
  }

  onModelGone(worker: string, model: string, version: string, generation: number): void {
    const load = this.loads.gone(worker, model, version, generation);
    this.observer?.onModelGone(worker, model, version, generation);
    if (load) this.#changed(load);
  }

  onInstance(worker: string, event: InstanceEvent): void {
    const load = this.loads.instance(worker, event);
    this.observer?.onInstance(worker, event);
    if (load) this.#changed(load);
  }

  onStarted(worker: string, batchId: number): void {
    this.flights.onStarted(worker, batchId);
  }

  onCompletion(worker: string, completion: BatchCompletion): void {
    this.flights.onCompletion(worker, completion);
  }

  onDraining(worker: string): void {
    this.#drain(worker);
    this.observer?.onDraining(worker);
  }

  #leaveUnnamed(worker: string, { named, up, remote }: Dialled): void {
    if (named || up) return;
    this.#workers.delete(worker);
    this.devices.forget(worker);
    void remote.close();
  }

  #drain(worker: string): void {
    const dialled = this.#workers.get(worker);
    if (!dialled || dialled.draining) return;
    dialled.draining = true;
    for (const load of this.loads.all()) if (load.holders.has(worker)) this.listener.onLoadChanged(load);
  }

  #lost(worker: string, reason: string): void {
    const dialled = this.#workers.get(worker);
    if (!dialled?.up) return;
    dialled.up = false;
    for (const load of this.loads.workerGone(worker)) this.listener.onLoadChanged(load);
    this.flights.onWorkerLost(worker, reason);
    const answered = this.#answered.take(worker);
    // One that drains goes when its replies have arrived.
    if (!dialled.draining) for (const [gateway, requests] of answered) this.listener.onAnswersInDoubt(gateway, requests);
    this.listener.onWorkerLost(worker);
  }

  #changed(load: Load): void {
    this.listener.onLoadChanged(load);
    this.flights.retryHomeless();
  }
}
