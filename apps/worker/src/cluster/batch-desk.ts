/**
 * The batches of every scheduler that are with this worker. Per instance at most one runs and one is staged at the local
 * worker, others wait here, inputs are pulled meanwhile. Invariant: each batch ends once, either at the scheduler that
 * sent it or, where that one is gone or not the owner any more, by handing its unanswered requests back to their gateways.
 */
import { ServingError } from '@paceline/protocol';
import type { WorkerLinks } from '@paceline/streams';
import {
  STALE_EPOCH,
  SUPERSEDED,
  WORKER_DRAINING,
  type Batch,
  type BatchCompletion,
  type FencedBatch,
  type RunningRequest,
  type SchedulerSession,
  type WorkerLink,
} from '@paceline/worker-rpc';
import { unanswered } from '../infer/completion.js';
import { hasHeldInputs, pullInputs } from './held-inputs.js';
import type { PartitionEpochs } from './partition-epochs.js';

/** One running, one staged. */
const MOST_GIVEN = 2;

interface Entry {
  readonly id: number;
  readonly session: SchedulerSession;
  readonly fenced: FencedBatch;
  readonly place: Place;
  /** What is to be run: inputs complete, members without inputs left out, under this desk's number. */
  batch: Batch;
  started: boolean;
}

/** An instance, or the quarantine of a load. */
interface Place {
  readonly key: string;
  readonly mostGiven: number;
  given: Entry[];
  waiting: Entry[];
  /** Entries whose inputs are on their way. */
  pulling: number;
}

export interface BatchDeskPorts {
  readonly worker: Pick<WorkerLink, 'execute'>;
  readonly links: Pick<WorkerLinks, 'send' | 'lost' | 'pull'>;
  readonly epochs: PartitionEpochs;
}

export class BatchDesk {
  readonly #entries = new Map<number, Entry>();
  readonly #places = new Map<string, Place>();
  readonly #sessions = new Set<SchedulerSession>();
  #nextId = 1;
  #closed = false;
  #idleWaiters: (() => void)[] = [];

  constructor(private readonly ports: BatchDeskPorts) {}

  /** Batches that have not ended. */
  get size(): number {
    return this.#entries.size;
  }

  connect(session: SchedulerSession): void {
    this.#sessions.add(session);
  }

  /** Its batches run on; what does not end well goes back to the gateways. */
  disconnect(session: SchedulerSession): void {
    this.#sessions.delete(session);
  }

  /** Refuses every batch from now on. */
  close(): void {
    this.#closed = true;
  }

  /** Ends every batch that is here as lost. @returns how many there were */
  giveUp(): number {
    const entries = [...this.#entries.values()];
    const error = new ServingError('UNAVAILABLE', 'the worker ended before the batch did', { reason: 'worker_ended' });
    for (const entry of entries) this.#end(entry, unanswered(entry.batch, 'lost', entry.started, error));
    return entries.length;
  }

  /** Resolves when no batch is here. */
  idle(): Promise<void> {
    return this.#entries.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Requests of a partition that will be answered, or handed back, by this worker. */
  running(partition: number): RunningRequest[] {
    return [...this.#entries.values()].flatMap(({ fenced, batch }) =>
      fenced.partition === partition ? batch.members.map(({ ref, attempt = 1 }) => ({ ref, attempt })) : [],
    );
  }

  execute(session: SchedulerSession, fenced: FencedBatch): void {
    const { partition, epoch, batch } = fenced;
    const highest = this.ports.epochs.offer(partition, epoch);
    if (highest) {
      const text = `partition ${partition} belongs to ${highest.owner} since epoch ${highest.number}; the batch came under ${epoch.number} from ${epoch.owner}`;
      return session.onCompletion(unanswered(batch, 'refused', false, new ServingError('ABORTED', text, { reason: STALE_EPOCH })));
    }
    if (this.#closed) {
      const error = new ServingError('UNAVAILABLE', 'the worker is shutting down', { reason: WORKER_DRAINING });
      return session.onCompletion(unanswered(batch, 'refused', false, error));
    }
    const id = this.#nextId++;
    const entry: Entry = { id, session, fenced, place: this.#placeOf(batch), batch: { ...batch, id }, started: false };
    this.#entries.set(id, entry);
    if (hasHeldInputs(batch)) {
      entry.place.pulling += 1;
      void this.#pull(entry);
    } else this.#ready(entry);
  }

  /** What the local worker says of a batch that it was given. */
  onCompletion(completion: BatchCompletion): void {
    const entry = this.#entries.get(completion.batchId);
    if (!entry) return;
    const { place } = entry;
    place.given = place.given.filter((other) => other !== entry);
    this.#begin(place);
    this.#end(entry, completion);
    this.#fill(place);
  }

  #placeOf({ model, version, generation, instance, quarantine }: Batch): Place {
    const key = `${model}\u0000${version}\u0000${generation}\u0000${quarantine ? '' : instance}`;
    let place = this.#places.get(key);
    if (!place) {
      place = { key, mostGiven: quarantine ? Infinity : MOST_GIVEN, given: [], waiting: [], pulling: 0 };
      this.#places.set(key, place);
    }
    return place;
  }

  async #pull(entry: Entry): Promise<void> {
    const { links } = this.ports;
    const { batch, failed } = await pullInputs(entry.batch, (ref) => links.pull(ref));
    entry.place.pulling -= 1;
    for (const { member, error } of failed) {
      // Who has it no more waits for no answer.
      if (error.reason !== 'request_gone') links.send(member.ref, { ok: false, final: true, error });
    }
    if (batch) {
      entry.batch = batch;
      return this.#ready(entry);
    }
    entry.batch = { ...entry.batch, members: [] };
    this.#end(entry, { ...unanswered(entry.batch, 'lost', false, failed[0]!.error), outcome: 'ok', error: undefined });
    this.#fill(entry.place);
  }

  #ready(entry: Entry): void {
    entry.place.waiting.push(entry);
    this.#fill(entry.place);
  }

  #fill(place: Place): void {
    while (place.given.length < place.mostGiven) {
      const entry = place.waiting.shift();
      if (!entry) break;
      place.given.push(entry);
      this.ports.worker.execute(entry.batch);
      this.#begin(place);
    }
    if (place.given.length + place.waiting.length + place.pulling === 0) this.#places.delete(place.key);
  }

  /** The first that is with the instance has it to itself: from now on a loss counts as a start. */
  #begin(place: Place): void {
    const [first] = place.given;
    if (!first || first.started) return;
    first.started = true;
    if (this.#sessions.has(first.session)) first.session.onStarted(first.fenced.batch.id);
  }

  #end(entry: Entry, completion: BatchCompletion): void {
    const { session, fenced } = entry;
    this.#entries.delete(entry.id);
    const connected = this.#sessions.has(session);
    const told = { ...completion, batchId: fenced.batch.id, instance: fenced.batch.instance };
    const orphaned = !connected || this.ports.epochs.isSuperseded(fenced.partition, fenced.epoch);
    if (completion.outcome === 'ok' || !orphaned) {
      if (connected) session.onCompletion(told);
    } else {
      this.#handBack(entry, completion);
      const error = new ServingError('ABORTED', 'the batch went back to its gateways: its partition has another owner', {
        reason: SUPERSEDED,
      });
      if (connected) session.onCompletion({ ...told, outcome: 'refused', started: false, error });
    }
    if (this.#entries.size === 0) for (const waiter of this.#idleWaiters.splice(0)) waiter();
  }

  #handBack({ batch }: Entry, { started, error, outcome }: BatchCompletion): void {
    const reason = error ?? new ServingError('UNAVAILABLE', `the batch ended ${outcome}`, { reason: 'batch_lost' });
    for (const member of batch.members) this.ports.links.lost(member.ref, member.attempt ?? 1, started, reason);
  }
}
