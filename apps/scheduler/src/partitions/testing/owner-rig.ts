/** For tests: one scheduler's partitions with everything around them faked, on a clock that stands still. */
import { create } from '@bufbuild/protobuf';
import type { FakeClock } from '@paceline/clock/testing';
import type { InMemoryClusterState } from '@paceline/cluster-state';
import { partitionOf } from '@paceline/core';
import type { Envelope, Member, ReplyFrame, RequestAttempt, RequestRef, SchedulerMessage } from '@paceline/protocol';
import { ModelConfigSchema } from '@paceline/protocol/model-config';
import type { RequestIntake } from '@paceline/streams';
import { StatisticsRegistry } from '@paceline/telemetry';
import type { LoadSpec } from '@paceline/worker-rpc';
import { FakeWorker, type InMemoryWorkers } from '@paceline/worker-rpc/testing';
import { envelope } from '../../batching/testing/fakes.js';
import { WorkerRegistry } from '../../workers/worker-registry.js';
import { LeaseKeeper } from '../lease-keeper.js';
import { PartitionOwner } from '../partition-owner.js';

export const PARTITIONS = 4;
export const TTL_MS = 1500;
/** The partition of model `m` version 1. */
export const HOME = partitionOf('m', '1', PARTITIONS);

/** What the schedulers of a test share. */
export interface Surroundings {
  readonly clock: FakeClock;
  readonly state: InMemoryClusterState;
  readonly network: InMemoryWorkers;
}

/** A load of model `m` version 1 with one instance, `g_0`. */
export function loadSpec(generation: number, maxBatchSize = 8): LoadSpec {
  const config = create(ModelConfigSchema, {
    name: 'm',
    maxBatchSize,
    instanceGroup: [{ name: 'g', count: 1 }],
    schedulingChoice: { case: 'dynamicBatching', value: { preferredBatchSize: [maxBatchSize] } },
  });
  return { model: 'm', version: '1', generation, config, modelPath: '/m', inputs: [], outputs: [] };
}

/** A worker with that load active, there for everybody. */
export async function activeWorker(network: InMemoryWorkers, id: string, generation = 1): Promise<FakeWorker> {
  const worker = new FakeWorker(id);
  await worker.load({} as never, loadSpec(generation), 'f');
  worker.activate('m', '1', generation);
  network.up(id, worker);
  return worker;
}

/** Request numbers of each batch that it was given. */
export const numbersOf = (worker: FakeWorker): number[][] => worker.batches.map(({ batch }) => batch.members.map(({ ref }) => ref.number));

/** Lets everything that waits for nothing but promises happen. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await Promise.resolve();
}

/** One scheduler process with everything around it faked. */
export class OwnerRig {
  readonly told: SchedulerMessage[] = [];
  /** Answers that a lost worker may not have sent, each with its gateway. */
  readonly inDoubt: [string, readonly RequestAttempt[]][] = [];
  readonly frames = new Map<number, ReplyFrame>();
  readonly intakes = new Map<number, RequestIntake>();
  readonly statistics = new StatisticsRegistry();
  readonly workers: WorkerRegistry;
  readonly owner: PartitionOwner;
  readonly keeper: LeaseKeeper;
  readonly stoppedReaders: number[] = [];
  readonly #clock: FakeClock;

  constructor(
    readonly id: string,
    { clock, state, network }: Surroundings,
  ) {
    this.#clock = clock;
    this.workers = new WorkerRegistry(clock, network.connectFrom(id), {
      onLoadChanged: (load) => this.owner.onLoadChanged(load),
      onWorkerUp: (remote, hello) => this.owner.onWorkerUp(remote, hello),
      onWorkerLost: (worker) => this.owner.onWorkerLost(worker),
      onAnswersInDoubt: (gateway, requests) => void this.inDoubt.push([gateway, requests]),
    });
    const links = {
      send: (ref: RequestRef, frame: ReplyFrame) => {
        if (this.frames.has(ref.number)) throw new Error(`request ${ref.number} was answered twice`);
        this.frames.set(ref.number, frame);
      },
      tell: (_gateway: string, message: SchedulerMessage) => void this.told.push(message),
      broadcast: (message: SchedulerMessage) => void this.told.push(message),
    };
    this.owner = new PartitionOwner({
      clock,
      workers: this.workers,
      links,
      statistics: this.statistics,
      queueTimeoutUs: 60_000_000,
      keeper: () => this.keeper,
      read: ({ partition }, intake) => {
        this.intakes.set(partition, intake);
        return {
          stop: () => {
            this.stoppedReaders.push(partition);
            return Promise.resolve();
          },
        };
      },
      homeOf: ({ model, version }) => partitionOf(model, version, PARTITIONS),
    });
    this.keeper = new LeaseKeeper({ leases: state.leases, clock, self: id, partitions: PARTITIONS, ttlMs: TTL_MS, listener: this.owner });
  }

  /** Takes over what is free; workers that are not there have had their time when this resolves. */
  async start(workers: readonly string[], schedulers = [this.id]): Promise<void> {
    this.setWorkers(workers);
    await settle();
    this.keeper.setSchedulers(schedulers);
    this.#clock.advance(0);
    await settle();
    if ([...this.workers.named()].every(({ up }) => up)) return;
    for (let step = 0; step < 10; step++) {
      this.#clock.advance(100_000);
      await settle();
    }
  }

  setWorkers(ids: readonly string[]): void {
    this.workers.setMembers(ids.map((id): Member => ({ role: 'worker', id, address: id, draining: false })));
  }

  /** Sends requests in one turn of the event loop, as the stream of `partition` brings them. */
  async send(numbers: readonly number[], attempt?: number, changes: Partial<Envelope> = {}): Promise<void> {
    const more = attempt === undefined ? changes : { ...changes, attempt };
    for (const number of numbers) this.intakes.get(HOME)?.onEnvelope(envelope(number, more));
    this.#clock.advance(0);
    await settle();
  }

  cancel(number: number): void {
    this.owner.onCancel('g', { kind: 'cancel', number, model: 'm', version: '1' });
  }

  owns(): number[] {
    return this.told.flatMap((message) => (message.kind === 'owns' ? [message.partition] : [])).sort();
  }
}
