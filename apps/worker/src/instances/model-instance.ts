/**
 * One model instance: the host it lives in, its return after that host died, and its moves to other hosts. What it does
 * with batches is in instance-batches.ts.
 */
import type { Timer } from '@paceline/clock';
import { CPU_DEVICE } from '@paceline/core';
import type { Batch } from '@paceline/worker-rpc';
import type { Berth, Tenant } from '../hosts/host-fleet.js';
import type { PlacementRequest } from '../hosts/placement.js';
import type { HostEnd } from '../hosts/host-process.js';
import { Backoff } from '../supervision/backoff.js';
import type { RestartReason } from '../supervision/observer.js';
import { InstanceBatches } from './instance-batches.js';
import type { InstanceContext } from './instance-context.js';
import { loadInto } from './load-into.js';
import type { LoadedModel } from './loaded-model.js';
import { warmUp } from './warm-up.js';

export class ModelInstance implements Tenant {
  readonly modelKey: string;
  readonly #backoff = new Backoff();
  #berth: Berth | undefined;
  #ready = false;
  #stopped = false;
  #moving = false;
  readonly #batches: InstanceBatches;
  #restart: Timer | undefined;
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
    this.#batches = new InstanceBatches(id, name, model, context, () => this.moveAway('slow', 'its runs are long, and it shared a host'));
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
    return this.#batches.idle();
  }

  placementRequest(): PlacementRequest {
    return { size: this.model.size, isolated: this.model.isolated || !this.sociable || this.device !== CPU_DEVICE };
  }

  execute(batch: Batch): void {
    const berth = this.#berth;
    if (this.#ready && berth?.host.alive) this.#batches.execute(batch, berth);
    else this.#batches.refuse(batch, `instance '${this.name}' is not ready`);
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
    const { host, pool, tenants } = berth;
    const othersWait = pool !== undefined && tenants.size > 1;
    const { clock, copies, limits, loadLimitUs, pooledLoadLimitUs } = this.context;
    await loadInto(host, this.id, this.model, this.device, othersWait ? Math.min(pooledLoadLimitUs, loadLimitUs) : loadLimitUs);
    const loadedUs = clock.nowUs();
    await warmUp(host, this.id, this.model, { limitUs: limits.firstRunLimitUs, copies });
    this.#warmupUs = clock.nowUs() - loadedUs;
    this.context.fleet.serves(berth);
  }

  #up(): void {
    this.#ready = true;
    const nowUs = this.context.clock.nowUs();
    this.#batches.hostIsFree(nowUs);
    this.#backoff.up(nowUs);
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

  #count(reason: RestartReason): void {
    const { model, version } = this.model.spec;
    this.context.observer?.onInstanceRestart({ model, version, instance: this.name, reason });
  }

  #announce(state: 'ready' | 'down', reason: string): void {
    const { model, version, generation } = this.model.spec;
    this.context.onInstance({ model, version, generation, instance: this.name, state, reason });
  }
}
