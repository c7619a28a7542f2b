/**
 * The worker of a cluster: the local worker, shared by all schedulers that are connected. Joins what it is made of and
 * decides nothing itself: loads live in {@link ModelLoads}, batches in {@link BatchDesk}, fencing in {@link PartitionEpochs}.
 */
import type { Clock } from '@paceline/clock';
import { ServingError, type Device, type Epoch } from '@paceline/protocol';
import type { WorkerLinks } from '@paceline/streams';
import {
  WORKER_DRAINING,
  type Claimed,
  type FencedBatch,
  type LoadReport,
  type LoadSpec,
  type SchedulerSession,
  type ServedWorker,
  type WorkerHello,
  type WorkerLink,
} from '@paceline/worker-rpc';
import type { InstanceMemory } from '../supervision/observer.js';
import { BatchDesk } from './batch-desk.js';
import { ModelLoads, type ModelLoadsLimits } from './model-loads.js';
import { PartitionEpochs } from './partition-epochs.js';

export interface ClusterWorkerPorts {
  /** As in membership: 16 hex digits. */
  readonly id: string;
  readonly devices: readonly Device[];
  readonly worker: WorkerLink & { instanceMemory(): Iterable<InstanceMemory> };
  readonly links: WorkerLinks;
  readonly clock: Clock;
}

/** After it was said that this worker drains: how long batches that were sent before that was heard are still taken. */
const NEWS_TRAVELS_US = 250_000;

export class ClusterWorker implements ServedWorker {
  readonly #sessions = new Set<SchedulerSession>();
  readonly #epochs = new PartitionEpochs();
  readonly #desk: BatchDesk;
  readonly #loads: ModelLoads;
  #draining = false;

  constructor(
    private readonly ports: ClusterWorkerPorts,
    limits: ModelLoadsLimits = {},
  ) {
    const { worker, links, clock } = ports;
    this.#desk = new BatchDesk({ worker, links, epochs: this.#epochs });
    this.#loads = new ModelLoads({ worker, clock, tellAll: (tell) => this.#sessions.forEach(tell) }, limits);
    worker.setListener({
      onInstance: (event) => this.#loads.onInstance(event),
      onCompletion: (completion) => this.#desk.onCompletion(completion),
    });
  }

  /** Batches that have not ended. */
  get unfinished(): number {
    return this.#desk.size;
  }

  get schedulerCount(): number {
    return this.#sessions.size;
  }

  connect(session: SchedulerSession): WorkerHello {
    this.#sessions.add(session);
    this.#desk.connect(session);
    const { id, devices } = this.ports;
    return { worker: id, devices, models: this.#loads.announcements(), draining: this.#draining, epochs: this.#epochs.list() };
  }

  disconnect(session: SchedulerSession): void {
    this.#sessions.delete(session);
    this.#desk.disconnect(session);
    this.#loads.disconnect(session);
  }

  async load(session: SchedulerSession, spec: LoadSpec, fingerprint: string): Promise<LoadReport> {
    if (this.#draining) throw new ServingError('UNAVAILABLE', 'the worker is shutting down', { reason: WORKER_DRAINING });
    return this.#loads.load(session, spec, fingerprint);
  }

  activate(model: string, version: string, generation: number): void {
    this.#loads.activate(model, version, generation);
  }

  retire(model: string, version: string, generation: number): Promise<void> {
    return this.#loads.retire(model, version, generation);
  }

  release(model: string, version: string, generation: number): void {
    this.#loads.release(model, version, generation);
  }

  claim(partition: number, epoch: Epoch): Claimed {
    const highest = this.#epochs.offer(partition, epoch);
    return highest ? { ok: false, highest } : { ok: true, running: this.#desk.running(partition) };
  }

  execute(session: SchedulerSession, fenced: FencedBatch): void {
    this.#desk.execute(session, fenced);
  }

  /**
   * Says that it goes, finishes the batches that are here and those that come before that is heard, refuses later ones.
   * What is given up is told as lost.
   * @returns batches that were given up because `limitMs` milliseconds were over
   */
  async drain(limitMs: number): Promise<number> {
    const { clock } = this.ports;
    this.#draining = true;
    for (const session of this.#sessions) session.onDraining();
    const limitUs = 1000 * limitMs;
    await new Promise<void>((resolve) => void clock.setTimer(Math.min(NEWS_TRAVELS_US, limitUs), resolve));
    this.#desk.close();
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(limitUs - Math.min(NEWS_TRAVELS_US, limitUs), resolve);
      void this.#desk.idle().then(() => {
        timer.cancel();
        resolve();
      });
    });
    this.#loads.close();
    return this.#desk.giveUp();
  }
}
