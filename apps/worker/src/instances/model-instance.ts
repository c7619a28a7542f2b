/**
 * One model instance: the batches it has (at most two: one running, one staged), the host it lives in, and its return
 * after that host died. Every batch that was accepted ends in exactly one completion.
 */
import type { Timer } from '@paceline/clock';
import { CPU_DEVICE } from '@paceline/core';
import { ServingError } from '@paceline/protocol';
import type { Batch } from '@paceline/worker-rpc';
import { FRAME } from '../host-protocol/frames.js';
import type { Berth, Tenant } from '../hosts/host-fleet.js';
import type { PlacementRequest } from '../hosts/placement.js';
import type { HostEnd } from '../hosts/host-process.js';
import { POOL_COPY_BYTES } from '../hosts/shared-file.js';
import { batchSpans, runOf } from '../infer/batch-spans.js';
import { executeFrame, gather, writeLargeInputs, type GatheredBatch } from '../infer/gather.js';
import { asServingError, unanswered } from '../infer/completion.js';
import { deliver, type ComputeStages, type Delivery } from '../infer/deliver.js';
import { readLargeOutputs, readOutputs, type BatchOutputs } from '../infer/scatter.js';
import { Backoff } from '../supervision/backoff.js';
import type { RestartReason } from '../supervision/observer.js';
import { beginLimitUs, type InstanceContext } from './instance-context.js';
import { failure, loadInto } from './load-into.js';
import type { LoadedModel } from './loaded-model.js';
import { warmUp } from './warm-up.js';

const MOST_BATCHES = 2;

/** When a batch was given to the instance, when the host was free for it, and when its answer came. */
type Took = Pick<Delivery, 'beganUs' | 'arrivedUs'> & { readonly givenUs: number };

export class ModelInstance implements Tenant {
  readonly modelKey: string;
  readonly #backoff = new Backoff();
  #berth: Berth | undefined;
  #ready = false;
  #stopped = false;
  #moving = false;
  #batches = 0;
  #restart: Timer | undefined;
  /** When the last batch ended, to know from when on the next one had the host to itself. */
  #freeSinceUs = 0;
  #idleWaiters: (() => void)[] = [];
  #warmupUs = 0;

  constructor(
    readonly id: number,
    readonly name: string,
    /** `cpu`, or the GPU it runs on, from a host of its own: `gpu:0`. */
    private readonly device: string,
    private readonly model: LoadedModel,
    private readonly context: InstanceContext,
    /** Whether it may live in a host with others. */
    private readonly sociable = true,
  ) {
    this.modelKey = model.key;
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** What the warmup samples took at the last start, milliseconds. */
  get warmupMs(): number {
    return this.#warmupUs / 1000;
  }

  /** First start. @throws ServingError with the runtime's text when the model cannot be loaded */
  async start(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const berth = this.context.fleet.place(this);
      this.#berth = berth;
      try {
        await this.#loadInto(berth);
        return this.#up();
      } catch (error) {
        // A host that others are in may have died of them, or be too busy with them; a host of its own shows whose fault it is.
        const elsewhere = berth.pool && !berth.host.alive && attempt === 1 && !this.#stopped;
        if (!elsewhere) throw error;
        this.model.isolated = true;
      }
    }
  }

  /** Takes no more batches, finishes what it has, frees its memory. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ready = false;
    this.#restart?.cancel();
    const berth = this.#berth;
    this.#berth = undefined;
    if (berth) await this.context.fleet.leave(this, berth);
  }

  /** Resolves when no batch is with it. */
  idle(): Promise<void> {
    return this.#batches === 0 ? Promise.resolve() : new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  placementRequest(): PlacementRequest {
    return { size: this.model.size, isolated: this.model.isolated || !this.sociable || this.device !== CPU_DEVICE };
  }

  execute(batch: Batch): void {
    const berth = this.#berth;
    if (!this.#ready || !berth?.host.alive) return this.#refuse(batch, `instance '${this.name}' is not ready`);
    if (this.#batches >= MOST_BATCHES) return this.#refuse(batch, `instance '${this.name}' has ${MOST_BATCHES} batches already`);
    const { clock, copies } = this.context;
    const givenUs = clock.nowUs();
    let gathered: GatheredBatch;
    try {
      gathered = gather(batch, this.model.tensors);
    } catch (error) {
      queueMicrotask(() => this.#complete(batch, 'failed', false, asServingError(error), givenUs));
      return;
    }
    const slot = berth.host.takeSlot();
    copies.inBytes += gathered.totalBytes;
    this.#batches += 1;
    const { shared } = berth.host;
    if (shared === undefined || gathered.totalBytes <= POOL_COPY_BYTES) return this.#give(batch, berth, gathered, slot, givenUs);
    void writeLargeInputs(gathered, shared, slot).then((written) => this.#give(batch, berth, gathered, slot, givenUs, written));
  }

  /** @param written see {@link FrameTarget} */
  #give(batch: Batch, berth: Berth, gathered: GatheredBatch, slot: number, givenUs: number, written?: boolean): void {
    const { host } = berth;
    const sequence = host.nextSequence();
    const target = {
      instance: this.id,
      sequence,
      slot,
      flags: host.startFlag,
      shared: host.shared,
      ...(written !== undefined && { written }),
    };
    const frame = executeFrame(gathered, target);
    const limitUs = this.model.limit.limitUs(gathered.totalBytes);
    const work = {
      limitUs,
      beginLimitUs: beginLimitUs(this.context, gathered.totalBytes),
      what: `a run of model '${batch.model}'`,
      onAnswer: (answer: Buffer) => this.#onAnswer(batch, berth, answer, givenUs, gathered.totalBytes),
      onGone: (started: boolean, reason: string, cause?: HostEnd['cause']) =>
        this.#onLost(batch, started, reason, givenUs, cause === 'hung' ? limitUs : undefined),
    };
    host.send(frame, sequence, work, slot);
  }

  onHostGone(berth: Berth, end: HostEnd): void {
    if (this.#berth !== berth || this.#stopped) return;
    this.#berth = undefined;
    const wasReady = this.#ready;
    this.#ready = false;
    if (!wasReady) return;
    this.#count(end.cause === 'ended' ? 'exited' : end.cause);
    this.#announce('down', end.text);
    this.#comeBackLater();
  }

  moveAway(reason: 'memory' | 'slow', why: string): void {
    if (this.#ready && !this.#moving && !this.#stopped) void this.#move(reason, why);
  }

  /** Its part of the memory of its host and what it has on a device, bytes; undefined where it has none or none was measured yet. */
  get residentBytes(): number | undefined {
    const berth = this.#berth;
    if (!berth || berth.residentBytes === 0) return undefined;
    return berth.residentBytes / Math.max(1, berth.tenants.size) + this.model.backend.deviceMemoryBytes;
  }

  /** Loads and warms up: the instance is ready for requests afterwards. */
  async #loadInto(berth: Berth): Promise<void> {
    const { host, pool } = berth;
    const { clock, copies, limits, loadLimitUs, pooledLoadLimitUs } = this.context;
    await loadInto(host, this.id, this.model, this.device, pool ? Math.min(pooledLoadLimitUs, loadLimitUs) : loadLimitUs);
    const loadedUs = clock.nowUs();
    await warmUp(host, this.id, this.model, { limitUs: limits.firstRunLimitUs, copies });
    this.#warmupUs = clock.nowUs() - loadedUs;
    this.context.fleet.serves(berth);
  }

  #up(): void {
    this.#ready = true;
    this.#freeSinceUs = this.context.clock.nowUs();
    this.#backoff.up(this.#freeSinceUs);
  }

  #comeBackLater(): void {
    if (this.#stopped) return;
    const delayUs = this.#backoff.down(this.context.clock.nowUs());
    this.#restart = this.context.clock.setTimer(delayUs, () => void this.#comeBack());
  }

  async #comeBack(): Promise<void> {
    if (this.#stopped) return;
    const berth = this.context.fleet.place(this, true);
    this.#berth = berth;
    try {
      await this.#loadInto(berth);
    } catch (error) {
      if (this.#stopped) return;
      this.#berth = undefined;
      this.context.logger.warn({ err: error, instance: this.name }, 'model instance did not come back');
      await this.context.fleet.leave(this, berth);
      if (!this.#stopped) this.#comeBackLater();
      return;
    }
    if (this.#stopped) return;
    this.#up();
    this.#announce('ready', 'restarted');
  }

  /** Replacement first: the old host serves until the new one has the model. */
  async #move(reason: 'memory' | 'slow', why: string): Promise<void> {
    this.#moving = true;
    const old = this.#berth!;
    const berth = this.context.fleet.place(this);
    try {
      await this.#loadInto(berth);
      if (this.#berth === old && this.#ready) {
        this.#berth = berth;
        this.#count(reason);
        this.context.logger.info({ instance: this.name, reason, why }, 'model instance moved to another host');
        await this.context.fleet.leave(this, old);
      } else {
        // It was stopped or fell meanwhile; whoever brings it back has found another place.
        await this.context.fleet.leave(this, berth);
      }
    } catch (error) {
      this.context.logger.warn({ err: error, instance: this.name }, 'model instance could not be moved to another host');
      await this.context.fleet.leave(this, berth);
    } finally {
      this.#moving = false;
    }
  }

  #onAnswer(batch: Batch, berth: Berth, answer: Buffer, givenUs: number, inputBytes: number): void | Promise<void> {
    const { clock } = this.context;
    const arrivedUs = clock.nowUs();
    const beganUs = Math.max(givenUs, this.#freeSinceUs);
    this.#freeSinceUs = arrivedUs;
    if (answer.readUInt32LE(4) !== FRAME.result) return this.#complete(batch, 'failed', true, failure(answer), givenUs);
    const took = { givenUs, beganUs, arrivedUs };
    const large = readLargeOutputs(answer, berth.host.shared);
    if (large === undefined) return this.#deliver(batch, berth, readOutputs(answer, berth.host.shared), took, inputBytes);
    return large.then(
      (outputs) => this.#deliver(batch, berth, outputs, took, inputBytes),
      (error: unknown) => this.#complete(batch, 'failed', true, asServingError(error), givenUs),
    );
  }

  #deliver(batch: Batch, berth: Berth, outputs: BatchOutputs, took: Took, inputBytes: number): void {
    const { clock, replies, copies, tracing } = this.context;
    let stages: ComputeStages;
    try {
      stages = deliver(batch, outputs, {
        tensors: this.model.tensors,
        replies,
        clock,
        copies,
        ...took,
      });
    } catch (error) {
      return this.#complete(batch, 'failed', true, asServingError(error), took.givenUs);
    }
    if (tracing) batchSpans(tracing, batch, { ...took, run: runOf(outputs, took.arrivedUs), endUs: clock.nowUs() });
    this.model.limit.record(stages.computeInferNs / 1000, inputBytes);
    this.#end();
    this.context.onCompletion({ batchId: batch.id, instance: batch.instance, outcome: 'ok', started: true, error: undefined, ...stages });
    if (berth.pool && stages.computeInferNs > 1000 * this.context.slowRunUs && !this.model.isolated) {
      this.model.isolated = true;
      this.moveAway('slow', 'its runs are long, and it shared a host');
    }
  }

  /** @param overLimitUs the limit, if the host was ended because a run took longer */
  #onLost(batch: Batch, started: boolean, reason: string, givenUs: number, overLimitUs: number | undefined): void {
    if (started) this.model.isolated = true;
    const hung = started && overLimitUs !== undefined;
    if (hung) this.model.limit.outlived(overLimitUs);
    const error = new ServingError(
      hung ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE',
      `model '${batch.model}' lost its instance '${this.name}': ${reason}`,
      {
        reason: hung ? 'execute_limit' : 'instance_lost',
      },
    );
    this.#complete(batch, 'lost', started, error, givenUs);
  }

  #complete(batch: Batch, outcome: 'failed' | 'lost', started: boolean, error: ServingError, givenUs: number): void {
    const { tracing, clock } = this.context;
    if (tracing) batchSpans(tracing, batch, { givenUs, endUs: clock.nowUs() }, error);
    if (started || outcome === 'lost') this.#end();
    this.context.onCompletion(unanswered(batch, outcome, started, error));
  }

  #refuse(batch: Batch, why: string): void {
    const error = new ServingError('UNAVAILABLE', why, { reason: 'instance_not_ready' });
    queueMicrotask(() => this.context.onCompletion(unanswered(batch, 'refused', false, error)));
  }

  #end(): void {
    this.#batches -= 1;
    if (this.#batches > 0) return;
    for (const waiter of this.#idleWaiters.splice(0)) waiter();
  }

  #count(reason: RestartReason): void {
    const { model, version } = this.model.spec;
    this.context.observer?.onInstanceRestart({ model, version, instance: this.name, reason });
  }

  #announce(state: 'ready' | 'down', reason: string): void {
    const { model, version, generation } = this.model.spec;
    this.context.onInstance({ model, version, generation, instance: this.name, state, reason });
  }
}
