/** A source, a worker and lanes that record what placement tells them, and hold what the test wants held. */
import { create } from '@bufbuild/protobuf';
import { FakeClock } from '@paceline/clock/testing';
import { ServingError } from '@paceline/protocol';
import { ModelConfigSchema, ModelInstanceGroup_Kind as Kind } from '@paceline/protocol/model-config';
import { StatisticsRegistry } from '@paceline/telemetry';
import type { LoadReport, LoadSpec, WorkerLink } from '@paceline/worker-rpc';
import type { LaneHost, LaneSpec } from '../lane-host.js';
import type { ModelEvent } from '../model-events.js';
import { ModelManager, type ModelManagerOptions } from '../model-manager.js';
import type { ModelSource, Observation, SourceModel, SourceRequest, SourceVersion } from '../model-source.js';

/** A promise that the test settles. */
export interface Gate<T> {
  readonly promise: Promise<T>;
  open(value: T): void;
  fail(error: Error): void;
}

export function gate<T>(): Gate<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  return { promise, open: resolve, fail: reject };
}

/** Lets everything that is ready happen. */
export const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class FakeSource implements ModelSource {
  readonly models = new Map<string, SourceModel | ServingError>();
  readonly requests: SourceRequest[] = [];
  /** What the next looks at the repository see; an Error is thrown. */
  readonly looks: (Map<string, Observation> | Error)[] = [];

  open(): Promise<readonly string[]> {
    return Promise.resolve(['"stray.onnx" is ignored']);
  }

  names(): readonly string[] {
    return [...this.models.keys()].sort();
  }

  read(name: string, request: SourceRequest): Promise<SourceModel | undefined> {
    this.requests.push(request);
    const model = this.models.get(name);
    return model instanceof ServingError ? Promise.reject(model) : Promise.resolve(model);
  }

  /** The last look lasts. */
  observe(): Promise<ReadonlyMap<string, Observation>> {
    const look = this.looks.length > 1 ? this.looks.shift() : this.looks[0];
    return look instanceof Error ? Promise.reject(look) : Promise.resolve(look ?? new Map());
  }

  set(name: string, versions: Readonly<Record<string, string>>, passiveGroup = false): void {
    this.models.set(name, {
      name,
      versions: Object.entries(versions).map(([version, print]) => good(name, version, print, passiveGroup)),
      warnings: ['a hint'],
    });
  }
}

function good(name: string, version: string, fingerprint: string, passiveGroup = false): SourceVersion {
  const groups = [
    { name, kind: Kind.CPU, count: 2 },
    ...(passiveGroup ? [{ name: 'spare', kind: Kind.CPU, count: 1, passive: true }] : []),
  ];
  const config = create(ModelConfigSchema, { name, maxBatchSize: 8, instanceGroup: groups });
  return {
    version,
    fingerprint,
    ok: true,
    config,
    modelPath: `/r/${name}/${version}/model.onnx`,
    inputs: [],
    outputs: [],
    labels: new Map(),
    warmup: [],
  };
}

/** Records calls in `log`; loads and drains finish at once unless the test holds them. */
export class FakeWorker implements WorkerLink {
  readonly held = new Map<string, Gate<LoadReport>>();
  /** Errors of the next loads. */
  readonly failures: Error[] = [];
  running = 0;
  mostRunning = 0;

  constructor(private readonly log: string[]) {}

  async load(spec: LoadSpec): Promise<LoadReport> {
    this.log.push(`load ${spec.model}/${spec.version} g${spec.generation}`);
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    try {
      const failure = this.failures.shift();
      if (failure) throw failure;
      const instances = spec.config.instanceGroup.flatMap((group) => Array.from({ length: group.count }, (_, i) => `${group.name}_${i}`));
      return (await this.held.get(`${spec.model}/${spec.version}`)?.promise) ?? { instances, warnings: ['from the worker'], durationMs: 1 };
    } finally {
      this.running -= 1;
    }
  }

  unload(model: string, version: string, generation: number): Promise<void> {
    this.log.push(`unload ${model}/${version} g${generation}`);
    return Promise.resolve();
  }

  execute(): void {
    throw new Error('placement executes nothing');
  }

  setListener(): void {
    throw new Error('placement does not listen');
  }
}

export class FakeLanes implements LaneHost {
  readonly specs: LaneSpec[] = [];
  readonly held = new Map<string, Gate<void>>();

  constructor(private readonly log: string[]) {}

  open(spec: LaneSpec): void {
    this.specs.push(spec);
    this.log.push(`open ${spec.model}/${spec.version} g${spec.generation}`);
  }

  async drain(model: string, version: string, generation: number): Promise<void> {
    this.log.push(`drain ${model}/${version} g${generation}`);
    await this.held.get(`${model}/${version}`)?.promise;
  }
}

/** A model manager over the fakes, and all that they recorded. */
export class PlacementFixture {
  /** What worker and lanes were told, in order. */
  readonly log: string[] = [];
  readonly events: ModelEvent[] = [];
  readonly source = new FakeSource();
  readonly worker = new FakeWorker(this.log);
  readonly lanes = new FakeLanes(this.log);
  readonly statistics = new StatisticsRegistry();
  readonly clock = new FakeClock();

  /** Mode explicit without start-up models, unless said otherwise. */
  manager(options: Partial<ModelManagerOptions> = {}): ModelManager {
    const { source, worker, lanes, clock, statistics } = this;
    const made = new ModelManager({ source, worker, lanes, clock, statistics }, { controlMode: 'explicit', startupModels: [], ...options });
    made.subscribe((event) => this.events.push(event));
    return made;
  }
}
