/** What a scheduler was told about its workers, with promises for what is still to come. */
import type { ModelAnnouncement, RemoteWorkerListener, WorkerHello } from '../cluster-worker.js';
import type { BatchCompletion, InstanceEvent } from '../worker-link.js';

export type RemoteEvent =
  | { readonly kind: 'up'; readonly hello: WorkerHello }
  | { readonly kind: 'down'; readonly worker: string; readonly reason: string }
  | { readonly kind: 'model'; readonly worker: string; readonly model: ModelAnnouncement }
  | { readonly kind: 'gone'; readonly worker: string; readonly load: string }
  | { readonly kind: 'instance'; readonly worker: string; readonly event: InstanceEvent }
  | { readonly kind: 'started'; readonly worker: string; readonly batchId: number }
  | { readonly kind: 'completion'; readonly worker: string; readonly completion: BatchCompletion }
  | { readonly kind: 'draining'; readonly worker: string };

export class RemoteRecorder implements RemoteWorkerListener {
  readonly events: RemoteEvent[] = [];
  readonly #waiters = new Set<() => void>();

  onUp(hello: WorkerHello): void {
    this.#add({ kind: 'up', hello });
  }

  onDown(worker: string, reason: string): void {
    this.#add({ kind: 'down', worker, reason });
  }

  onModel(worker: string, model: ModelAnnouncement): void {
    this.#add({ kind: 'model', worker, model });
  }

  onModelGone(worker: string, model: string, version: string, generation: number): void {
    this.#add({ kind: 'gone', worker, load: `${model}/${version}/${generation}` });
  }

  onInstance(worker: string, event: InstanceEvent): void {
    this.#add({ kind: 'instance', worker, event });
  }

  onStarted(worker: string, batchId: number): void {
    this.#add({ kind: 'started', worker, batchId });
  }

  onCompletion(worker: string, completion: BatchCompletion): void {
    this.#add({ kind: 'completion', worker, completion });
  }

  onDraining(worker: string): void {
    this.#add({ kind: 'draining', worker });
  }

  /** Events of one kind, oldest first. */
  of<K extends RemoteEvent['kind']>(kind: K): Extract<RemoteEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<RemoteEvent, { kind: K }> => event.kind === kind);
  }

  /** Resolves with the first event of that kind, at or after position `from` of {@link RemoteRecorder.events}, that suits. */
  next<K extends RemoteEvent['kind']>(
    kind: K,
    suits: (event: Extract<RemoteEvent, { kind: K }>) => boolean = () => true,
    from = 0,
  ): Promise<Extract<RemoteEvent, { kind: K }>> {
    return new Promise((resolve) => {
      const attempt = (): void => {
        const found = this.events
          .slice(from)
          .find((event): event is Extract<RemoteEvent, { kind: K }> => event.kind === kind && suits(event as never));
        if (!found) return;
        this.#waiters.delete(attempt);
        resolve(found);
      };
      this.#waiters.add(attempt);
      attempt();
    });
  }

  completion(batchId: number): Promise<BatchCompletion> {
    return this.next('completion', ({ completion }) => completion.batchId === batchId).then(({ completion }) => completion);
  }

  #add(event: RemoteEvent): void {
    this.events.push(event);
    for (const waiter of [...this.#waiters]) waiter();
  }
}
