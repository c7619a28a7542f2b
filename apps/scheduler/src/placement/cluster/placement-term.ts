/**
 * One term of a placement owner: from the lease to its end it decides which models are loaded where, by a model manager
 * over the workers of the cluster. Invariants: it does not touch what is there before it knows what should be there;
 * gateways hear of it only when its start-up is complete, unless there was never another owner; once the term is over it
 * asks nothing of anybody.
 */
import { stat } from 'node:fs/promises';
import type { Timer } from '@paceline/clock';
import { partitionOf } from '@paceline/core';
import { isCurrentEpoch, ServingError, toServingError, type Epoch, type GatewayMessage, type Member } from '@paceline/protocol';
import type { LoadSpec } from '@paceline/worker-rpc';
import { readLoadRequest } from '../load-request.js';
import { ModelManager, type StartupModel } from '../model-manager.js';
import { layOutFiles, UPLOAD_LIMITS } from '../uploaded-files.js';
import { ClusterLoads } from './cluster-loads.js';
import { ControlRequests, type ControlMessage } from './control-requests.js';
import { CounterRelay } from './counter-relay.js';
import type { DesiredModels } from './desired-models.js';
import { isWantOfWorker } from './load-target.js';
import type { PlacementOptions, PlacementPorts } from './placement-ports.js';
import { routingContent } from './routing-content.js';
import { RoutingPublisher } from './routing-publisher.js';
import { mergeStartup, rebuildDesired, requestOf } from './startup-models.js';
import { Takeover } from './takeover.js';
import type { WorkerFleet } from './worker-fleet.js';

const RETRY_US = 1_000_000;

export interface TermPorts extends PlacementPorts {
  readonly fleet: WorkerFleet;
  readonly wanted: DesiredModels;
  /** Whether the lease holds still, by the monotonic clock of this process. */
  valid(): boolean;
}

export class PlacementTerm {
  readonly manager: ModelManager;
  readonly #loads: ClusterLoads;
  readonly #publisher: RoutingPublisher;
  readonly #control: ControlRequests;
  readonly #unsubscribe: () => void;
  readonly #takeover: Takeover;
  readonly #counters: CounterRelay;
  /** Models that did not come up for want of a worker, with the request that asked for them. */
  readonly #wanting = new Map<string, DesiredRequest>();
  #retry: { readonly timer: Timer; readonly wake: () => void } | undefined;
  #generation = 0;
  #ended = false;

  constructor(
    private readonly ports: TermPorts,
    private readonly options: PlacementOptions,
    private readonly term: { readonly epoch: Epoch; readonly fresh: boolean; readonly members: readonly Member[] | undefined },
  ) {
    const { clock, fleet, links, logger, source, statistics } = ports;
    const valid = (): boolean => !this.#ended && ports.valid();
    this.#loads = new ClusterLoads(
      {
        clock,
        fleet,
        valid,
        worker: ports.worker,
        estimate: ports.estimate ?? sizeOfFile,
        onProgress: (model, text) => this.#control.onProgress(model, text),
        onFailure: (worker, { model, version }, error) =>
          logger.warn({ worker, model, version, reason: error.message }, 'replica not loaded'),
      },
      {
        partitions: options.partitions,
        waitUs: () => (this.manager.started ? 1000 * (options.loadWaitMs ?? 60_000) : Infinity),
        fitWaitUs: 1000 * (options.fitWaitMs ?? 5000),
      },
    );
    // Lanes open from what the workers announce; what is left to do here is to let the gateways know before a lane ends.
    const lanes = { open: () => undefined, drain: () => this.#publisher.settled() };
    const nextGeneration = (): number => (this.#generation = Math.max(this.#generation, fleet.highestGeneration()) + 1);
    this.manager = new ModelManager(
      { worker: this.#loads, lanes, clock, source, nextGeneration, ...(statistics && { statistics }) },
      {
        ...options,
        startup: (names) => this.#startup(names),
        onPollFailure: (error) => logger.error({ err: error }, 'model repository not polled; what is loaded stays'),
      },
    );
    this.#takeover = new Takeover(
      fleet,
      clock,
      { leastUs: 2000 * (options.heartbeatMs ?? 500), limitUs: 1000 * (options.settleMs ?? 3000) },
      term.members,
    );
    this.#counters = new CounterRelay(links);
    this.#publisher = new RoutingPublisher({
      clock,
      links,
      epoch: term.epoch,
      valid,
      content: () => routingContent(this.manager, fleet, (load) => this.#partitionOf(load)),
      onSilent: (gateway) => logger.warn({ gateway }, 'gateway did not acknowledge a routing in time'),
    });
    this.#control = new ControlRequests({
      perform: (request) => this.#perform(request),
      tell: (gateway, message) => {
        if (valid()) links.tell(gateway, message);
      },
    });
    const ends = [
      fleet.subscribe({
        onChange: () => this.#changed(),
        onInstance: (event) => this.manager.noteInstance(event),
        onJoin: () => this.#retryWanting(),
      }),
      this.manager.subscribe((event) => {
        ports.onModelEvent?.(event);
        this.#publisher.changed();
      }),
    ];
    this.#unsubscribe = () => ends.forEach((end) => end());
  }

  /** Takes over. Resolves when the start-up is complete or the term has ended; never rejects. */
  async run(): Promise<void> {
    await this.#takeover.known;
    const { fleet, logger } = this.ports;
    const active = [...fleet.workers.values()].some(({ loads }) => [...loads.values()].some(({ state }) => state === 'active'));
    // Nobody has a routing that this one would spoil.
    if (this.term.fresh && !active && !this.#ended) this.#publisher.open();
    while (!this.#ended) {
      try {
        const { models, warnings } = await this.manager.start();
        for (const warning of warnings) logger.warn(warning);
        for (const { model, error } of models) this.#noteOutcome(model, this.#wanting.get(model) ?? {}, error);
        break;
      } catch (thrown) {
        logger.error({ err: toServingError(thrown) }, 'models not started; tried again');
        await this.#pause(RETRY_US);
      }
    }
    if (this.#ended) return;
    this.#publisher.open();
    await this.#publisher.settled();
    this.#loads.beginSweep();
    this.#control.open();
  }

  /** Everything stays as it is, for the next owner. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#unsubscribe();
    this.#takeover.end();
    this.#retry?.timer.cancel();
    this.#retry?.wake();
    this.manager.abandon();
    this.#loads.close();
    this.#publisher.close();
    this.#control.close();
  }

  /** Membership has been read, or is different now. */
  onMembers(members: readonly Member[]): void {
    this.#takeover.onMembers(members);
  }

  onGatewayUp(gateway: string): void {
    this.#publisher.onGatewayUp(gateway);
    this.#counters.onGatewayUp(gateway);
  }

  onGatewayDown(gateway: string): void {
    this.#publisher.onGatewayDown(gateway);
    this.#counters.onGatewayDown(gateway);
    this.#control.onGatewayDown(gateway);
  }

  /** @returns an epoch that a gateway knows and that this term does not reach; the term cannot go on then */
  onGatewayMessage(gateway: string, message: GatewayMessage): Epoch | undefined {
    if (message.kind === 'control') this.#control.onControl(gateway, message);
    if (message.kind === 'statistics') this.#counters.onStatistics(gateway, message.versions);
    if (message.kind !== 'routed') return undefined;
    const { epoch } = this.term;
    if (message.epoch.number === epoch.number && message.epoch.owner === epoch.owner) {
      this.#publisher.onRouted(gateway, message.generation);
      return undefined;
    }
    return isCurrentEpoch(epoch, message.epoch) ? undefined : message.epoch;
  }

  async #startup(names: readonly string[]): Promise<readonly StartupModel[]> {
    const { fleet, source, wanted } = this.ports;
    if (this.options.controlMode !== 'explicit') return names.map((model) => ({ model }));
    const { fresh, models } = await wanted.read();
    if (!fresh) return this.#remember(mergeStartup(names, models));
    const rebuilt = await rebuildDesired(names, fleet, source, this.options.uploadDirectory);
    for (const model of rebuilt) await wanted.record(model);
    return this.#remember(mergeStartup(names, rebuilt));
  }

  #remember(models: readonly StartupModel[]): readonly StartupModel[] {
    for (const { model, request } of models) this.#wanting.set(model, request ?? {});
    return models;
  }

  #partitionOf(load: Pick<LoadSpec, 'model' | 'version' | 'generation'>): number {
    return this.#loads.partitionOf(load) ?? partitionOf(load.model, load.version, this.options.partitions);
  }

  #changed(): void {
    this.#publisher.changed();
    this.#takeover.check();
  }

  /** Its outcome is told once every gateway goes by what it led to: after a failure too, whose reason stands in the index. */
  async #perform(request: ControlMessage): Promise<void> {
    try {
      await this.#operate(request);
    } finally {
      this.#publisher.changed();
      await this.#publisher.settled();
    }
  }

  async #operate({ operation, model, parameters, unloadDependents }: ControlMessage): Promise<void> {
    const { wanted } = this.ports;
    if (operation === 'unload') {
      this.#wanting.delete(model);
      await this.manager.unload(model, { unloadDependents });
      await wanted.record({ model, wanted: false, config: undefined });
    } else {
      const { config, root } = await this.#requestOf(model, parameters);
      const request = requestOf({ config, ...(root === undefined ? {} : { root }) });
      await this.manager.loadAs(model, request);
      await wanted.record({ model, wanted: true, config, ...(root === undefined ? {} : { root }) });
    }
  }

  /** Lays out the files of a load request where every worker can read them. */
  async #requestOf(
    model: string,
    parameters: ControlMessage['parameters'],
  ): Promise<{ config: string | undefined; root: string | undefined }> {
    const { config, files } = readLoadRequest(parameters);
    const { controlMode, uploadDirectory } = this.options;
    if (files === undefined || controlMode !== 'explicit') return { config, root: undefined };
    if (uploadDirectory === undefined) {
      const [first] = files.keys();
      throw new ServingError('FAILED_PRECONDITION',
        `load parameter 'file:${first}' is not taken: the schedulers were started without --model-upload-directory, a folder that all schedulers and workers share`,
        { reason: 'no_upload_directory' }); // prettier-ignore
    }
    return { config, root: (await layOutFiles(model, files, UPLOAD_LIMITS, uploadDirectory)).root };
  }

  /** Remembers a model of the start-up that failed for want of a worker: it is loaded when one joins. */
  #noteOutcome(model: string, request: DesiredRequest, error: ServingError | undefined): void {
    const cause = error?.cause instanceof ServingError ? error.cause : error;
    if (cause !== undefined && isWantOfWorker(cause)) this.#wanting.set(model, request);
    else this.#wanting.delete(model);
  }

  #retryWanting(): void {
    if (!this.manager.started) return;
    for (const [model, request] of this.#wanting) {
      this.#wanting.delete(model);
      if (this.manager.readyVersions(model).length > 0) continue;
      this.manager.retry(model, request).catch((thrown: unknown) => this.#noteOutcome(model, request, toServingError(thrown)));
    }
  }

  #pause(us: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#retry = { timer: this.ports.clock.setTimer(us, resolve), wake: resolve };
    return promise;
  }
}

type DesiredRequest = NonNullable<StartupModel['request']>;

const sizeOfFile = async ({ modelPath }: LoadSpec): Promise<number> =>
  modelPath === '' ? 0 : (await stat(modelPath).catch(() => undefined))?.size ?? 0; // prettier-ignore
