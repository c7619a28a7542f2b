/**
 * Joins schedulers and workers inside one process, for tests and simulations: the behaviour of a connection without the
 * bytes. What crosses it arrives in order and later, never inside the call that sent it; after a cut nothing arrives.
 */
import { ServingError } from '@paceline/protocol';
import type { ConnectWorker, RemoteWorker, RemoteWorkerListener } from '../cluster-worker.js';
import type { SchedulerSession, ServedWorker } from '../served-worker.js';

/** One connection; both directions die with it. */
class Connection {
  alive = true;
  readonly session: SchedulerSession;
  readonly lost: ((error: ServingError) => void)[] = [];

  constructor(
    readonly served: ServedWorker,
    scheduler: string,
    worker: string,
    listener: RemoteWorkerListener,
  ) {
    const later = (tell: () => void): void => this.later(tell);
    this.session = {
      scheduler,
      onModel: (model) => later(() => listener.onModel(worker, model)),
      onModelGone: (model, version, generation) => later(() => listener.onModelGone(worker, model, version, generation)),
      onInstance: (event) => later(() => listener.onInstance(worker, event)),
      onStarted: (batchId) => later(() => listener.onStarted(worker, batchId)),
      onCompletion: (completion) => later(() => listener.onCompletion(worker, completion)),
      onDraining: () => later(() => listener.onDraining(worker)),
    };
    const hello = served.connect(this.session);
    later(() => listener.onUp(hello));
  }

  later(act: () => void): void {
    queueMicrotask(() => {
      if (this.alive) act();
    });
  }
}

class InMemoryRemoteWorker implements RemoteWorker {
  connection: Connection | undefined;

  constructor(
    readonly worker: string,
    private readonly network: InMemoryWorkers,
    readonly listener: RemoteWorkerListener,
  ) {}

  get connected(): boolean {
    return this.connection !== undefined;
  }

  load: RemoteWorker['load'] = (spec, fingerprint) => this.#ask((served, session) => served.load(session, spec, fingerprint));

  activate: RemoteWorker['activate'] = (model, version, generation) =>
    this.#ask(async (served) => served.activate(model, version, generation));

  retire: RemoteWorker['retire'] = (model, version, generation) =>
    this.#ask((served) => served.retire(model, version, generation)).catch(() => undefined);

  release: RemoteWorker['release'] = (model, version, generation) => this.#tell((served) => served.release(model, version, generation));

  claim: RemoteWorker['claim'] = (partition, epoch) => this.#ask(async (served) => served.claim(partition, epoch));

  execute: RemoteWorker['execute'] = (batch) => this.#tell((served, session) => served.execute(session, batch));

  close(): Promise<void> {
    this.cut();
    this.network.forget(this);
    return Promise.resolve();
  }

  /** @returns whether there was a connection */
  cut(): boolean {
    const { connection } = this;
    if (!connection) return false;
    this.connection = undefined;
    connection.alive = false;
    for (const lose of connection.lost) lose(workerLost(this.worker));
    queueMicrotask(() => connection.served.disconnect(connection.session));
    return true;
  }

  #tell(act: (served: ServedWorker, session: SchedulerSession) => void): void {
    const { connection } = this;
    connection?.later(() => act(connection.served, connection.session));
  }

  #ask<T>(act: (served: ServedWorker, session: SchedulerSession) => Promise<T>): Promise<T> {
    const { connection } = this;
    if (!connection) return Promise.reject(workerLost(this.worker));
    return new Promise<T>((resolve, reject) => {
      connection.lost.push(reject);
      connection.later(
        () => void act(connection.served, connection.session).then((value) => connection.later(() => resolve(value)), reject),
      );
    });
  }
}

/** A network of workers in this process. Schedulers connect through {@link InMemoryWorkers.connectFrom}. */
export class InMemoryWorkers {
  readonly #served = new Map<string, ServedWorker>();
  readonly #remotes = new Set<{ readonly remote: InMemoryRemoteWorker; readonly scheduler: string }>();

  /** For one scheduler process. A worker that is not there yet is connected as soon as it is. */
  connectFrom(scheduler: string): ConnectWorker {
    return (worker, _address, listener) => {
      const remote = new InMemoryRemoteWorker(worker, this, listener);
      const entry = { remote, scheduler };
      this.#remotes.add(entry);
      this.#join(entry);
      return remote;
    };
  }

  /** The worker is there (again): everybody who dialled it is connected. */
  up(worker: string, served: ServedWorker): void {
    this.#served.set(worker, served);
    for (const entry of this.#remotes) if (entry.remote.worker === worker) this.#join(entry);
  }

  /** The worker is gone for everybody. */
  down(worker: string, reason = 'the connection was cut'): void {
    this.#served.delete(worker);
    this.#cut((entry) => entry.remote.worker === worker, reason);
  }

  /** Cuts the connection of one pair; it comes back with {@link InMemoryWorkers.up}. */
  cut(worker: string, scheduler: string, reason = 'the connection was cut'): void {
    this.#cut((entry) => entry.remote.worker === worker && entry.scheduler === scheduler, reason);
  }

  /** For a remote that was closed. */
  forget(remote: InMemoryRemoteWorker): void {
    for (const entry of this.#remotes) if (entry.remote === remote) this.#remotes.delete(entry);
  }

  #cut(which: (entry: { readonly remote: InMemoryRemoteWorker; readonly scheduler: string }) => boolean, reason: string): void {
    for (const entry of this.#remotes) {
      if (!which(entry) || !entry.remote.cut()) continue;
      queueMicrotask(() => entry.remote.listener.onDown(entry.remote.worker, reason));
    }
  }

  #join({ remote, scheduler }: { readonly remote: InMemoryRemoteWorker; readonly scheduler: string }): void {
    const served = this.#served.get(remote.worker);
    if (served && !remote.connection) remote.connection = new Connection(served, scheduler, remote.worker, remote.listener);
  }
}

function workerLost(worker: string): ServingError {
  return new ServingError('UNAVAILABLE', `worker ${worker} is not connected`, { reason: 'worker_lost' });
}
