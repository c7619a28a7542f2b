/** A cluster in one process on a virtual clock: workers, gateways that acknowledge, a store, any number of schedulers. */
import { FakeClock } from '@paceline/clock/testing';
import { InMemoryClusterState, type Leases } from '@paceline/cluster-state';
import type { Device, GatewayMessage, LoadParameter, Member, Routing, SchedulerMessage, ServingError } from '@paceline/protocol';
import { createLog, SILENT } from '@paceline/telemetry';
import type { LoadSpec, RemoteWorker, RemoteWorkerListener } from '@paceline/worker-rpc';
import { FakeWorker, InMemoryWorkers } from '@paceline/worker-rpc/testing';
import { FakeSource, flush } from '../../testing/fakes.js';
import { PlacementOwner } from '../placement-owner.js';
import type { PlacementOptions } from '../placement-ports.js';

const BEAT_US = 500_000;

/** Follows the newest routing as a gateway does. */
export class FakeGateway {
  routing: Routing | undefined;
  /** False: it goes by a routing and does not say so. */
  acknowledges = true;
  readonly progress: string[] = [];
  /** What it heard of others, `process model/version successes`. */
  readonly counted: string[] = [];
  readonly results = new Map<number, ServingError | undefined>();

  constructor(readonly id: string) {}

  /** @returns what it answers */
  onMessage(message: SchedulerMessage): GatewayMessage | undefined {
    if (message.kind === 'control-progress') this.progress.push(message.text);
    if (message.kind === 'control-result') this.results.set(message.id, message.error);
    if (message.kind === 'statistics') {
      for (const { model, version, success } of message.versions)
        this.counted.push(`${message.process} ${model}/${version} ${success.count}`);
    }
    if (message.kind !== 'routing') return undefined;
    const known = this.routing?.epoch;
    const { epoch } = message.routing;
    if (known === undefined || epoch.number > known.number || (epoch.number === known.number && epoch.owner === known.owner)) {
      this.routing = message.routing;
    }
    const { routing } = this;
    return this.acknowledges && routing ? { kind: 'routed', epoch: routing.epoch, generation: routing.generation } : undefined;
  }

  /** `model/version`, with `!` where no instance is up. */
  get models(): string[] {
    return (this.routing?.models ?? []).map(({ model, healthy }) => `${model.name}/${model.version}${healthy ? '' : '!'}`);
  }
}

class Scheduler {
  readonly owner: PlacementOwner;
  readonly remotes = new Map<string, RemoteWorker>();
  #read: string | undefined;

  constructor(
    readonly id: string,
    private readonly cluster: ClusterFixture,
    options: Partial<PlacementOptions>,
  ) {
    this.owner = new PlacementOwner(
      {
        clock: cluster.clock,
        leases: this.#leases(),
        desired: cluster.state.desired,
        source: cluster.source,
        logger: createLog(SILENT).logger,
        worker: (worker) => this.remotes.get(worker),
        estimate: (spec) => Promise.resolve(cluster.bytes.get(spec.model) ?? 0),
        links: {
          tell: (gateway, message) => cluster.deliver(this, gateway, message),
          get gateways() {
            return [...cluster.gateways.keys()];
          },
        },
      },
      { scheduler: id, partitions: 16, leaseTtlMs: 1500, controlMode: 'explicit', startupModels: [], ...options },
    );
  }

  /** Those of the store, which answer a process that is dead no more. */
  #leases(): Leases {
    const { leases } = this.cluster.state;
    const alive = <T>(ask: () => Promise<T>): Promise<T> =>
      this.cluster.schedulers.get(this.id) === this ? ask() : new Promise(() => undefined);
    return {
      acquire: (...request) => alive(() => leases.acquire(...request)),
      renew: (...request) => alive(() => leases.renew(...request)),
      release: (...request) => alive(() => leases.release(...request)),
    };
  }

  beat(members: readonly Member[]): void {
    for (const { id, address, role } of members) {
      if (role === 'worker' && !this.remotes.has(id)) this.remotes.set(id, this.cluster.connect(this.id, id, address, this.#listener()));
    }
    // As a beat does: at first, and when it is different.
    const read = JSON.stringify(members);
    if (read === this.#read) return;
    this.#read = read;
    this.owner.onBeat(members);
  }

  #listener(): RemoteWorkerListener {
    const ignore = (): void => undefined;
    const { fleet } = this.owner;
    return {
      onUp: (hello) => fleet.onUp(hello),
      onDown: (worker, reason) => fleet.onDown(worker, reason),
      onModelGone: (worker, model, version, generation) => fleet.onModelGone(worker, model, version, generation),
      onInstance: (worker, event) => fleet.onInstance(worker, event),
      onDraining: (worker) => fleet.onDraining(worker),
      onModel: (worker, model) => {
        fleet.onModel(worker, model);
        // The lane of the retired load is empty at once.
        const { spec } = model;
        if (model.state === 'retiring') this.remotes.get(worker)?.release(spec.model, spec.version, spec.generation);
      },
      onStarted: ignore,
      onCompletion: ignore,
    };
  }
}

export class ClusterFixture {
  readonly clock = new FakeClock();
  readonly state = new InMemoryClusterState(this.clock);
  readonly source = new FakeSource();
  readonly network = new InMemoryWorkers();
  readonly workers = new Map<string, FakeWorker>();
  readonly gateways = new Map<string, FakeGateway>();
  readonly schedulers = new Map<string, Scheduler>();
  /** Memory of an instance by model, bytes. */
  readonly bytes = new Map<string, number>();

  connect(scheduler: string, worker: string, address: string, listener: RemoteWorkerListener): RemoteWorker {
    return this.network.connectFrom(scheduler)(worker, address, listener);
  }

  addWorker(id: string, memoryBytes = 1e9, gpus = 0): FakeWorker {
    const gpu = (n: number): Device => ({ id: `gpu:${n}`, kind: 'gpu', memoryBytes });
    const worker = new FakeWorker(id, [{ id: 'cpu', kind: 'cpu', memoryBytes }, ...Array.from({ length: gpus }, (_, n) => gpu(n))]);
    this.workers.set(id, worker);
    this.network.up(id, worker);
    return worker;
  }

  /** As kill -9. */
  killWorker(id: string): void {
    this.workers.delete(id);
    this.network.down(id);
  }

  addGateway(id: string): FakeGateway {
    const gateway = new FakeGateway(id);
    this.gateways.set(id, gateway);
    for (const { owner } of this.schedulers.values()) owner.onGatewayUp(id);
    return gateway;
  }

  addScheduler(id: string, options: Partial<PlacementOptions> = {}): PlacementOwner {
    const scheduler = new Scheduler(id, this, options);
    this.schedulers.set(id, scheduler);
    scheduler.owner.start();
    return scheduler.owner;
  }

  /** As kill -9: it neither renews nor hears anything any more. */
  killScheduler(id: string): void {
    this.schedulers.delete(id);
    for (const worker of this.workers.keys()) this.network.cut(worker, id);
  }

  deliver(from: Scheduler, gateway: string, message: SchedulerMessage): void {
    if (this.schedulers.get(from.id) !== from) return;
    const answer = this.gateways.get(gateway)?.onMessage(message);
    if (answer !== undefined) queueMicrotask(() => from.owner.onGatewayMessage(gateway, answer));
  }

  /** A gateway asks whoever decides. */
  control(
    gateway: string,
    id: number,
    operation: 'load' | 'unload',
    model: string,
    parameters: Readonly<Record<string, LoadParameter>> = {},
  ): void {
    const message: GatewayMessage = { kind: 'control', id, operation, model, parameters, unloadDependents: false };
    for (const { owner } of this.schedulers.values()) owner.onGatewayMessage(gateway, message);
  }

  /** Time passes in steps of half a second, with a beat of everybody at each. */
  async pass(seconds: number): Promise<void> {
    for (let steps = 0; steps < seconds * 2; steps++) {
      this.clock.advance(BEAT_US);
      const members = [...this.workers.keys()].map((id): Member => ({ role: 'worker', id, address: id, draining: false }));
      for (const scheduler of this.schedulers.values()) scheduler.beat(members);
      await settle();
    }
  }

  /** What takes real time happens, while the clock stands still. */
  async until(condition: () => boolean): Promise<void> {
    const endMs = performance.now() + 5000;
    while (!condition()) {
      if (performance.now() > endMs) throw new Error('the condition did not come true within 5 s');
      await settle();
    }
  }

  /** What a worker has, `model/version state`. */
  loadsOn(id: string): string[] {
    return [...(this.workers.get(id)?.models.values() ?? [])].map(({ spec, state }) => `${spec.model}/${spec.version} ${state}`).sort();
  }
}

/** Lets everything that is ready happen, chains of answers included. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await flush();
}

/** What a worker reports of a load that came up. */
export const reportOf = (spec: LoadSpec): { instances: string[]; warnings: string[]; durationMs: number } => ({
  instances: [`${spec.model}_0`, `${spec.model}_1`],
  warnings: [],
  durationMs: 1,
});
