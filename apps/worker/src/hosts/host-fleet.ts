/**
 * All instance hosts of one worker: starts them where placement says, watches them, and ends them. Its invariant: a host
 * that is neither holding nor about to hold an instance is killed, and every host that ends has told its instances.
 */
import { readFileSync } from 'node:fs';
import type { Clock, Timer } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';
import type { Logger } from '@paceline/telemetry';
import { emptyFrame, FRAME } from '../host-protocol/frames.js';
import type { CopyCounter } from '../infer/copy-counter.js';
import { MemoryGrowth } from '../supervision/memory-growth.js';
import { HostProcess } from './host-process.js';
import { OrphanGuard } from './orphan-guard.js';
import { choosePlacement, type PlacementLimits, type PlacementRequest } from './placement.js';

/** What the fleet needs to know of an instance. */
export interface Tenant {
  readonly id: number;
  readonly modelKey: string;
  placementRequest(): PlacementRequest;
  onHostGone(berth: Berth, reason: string): void;
  /** The host is to be replaced: move to another one. */
  moveAway(reason: string): void;
}

/** One host and who is in it. */
export interface Berth {
  readonly host: HostProcess;
  readonly pooled: boolean;
  readonly tenants: Set<Tenant>;
  readonly growth: MemoryGrowth;
  /** Its tenants are moving out; nobody moves in. */
  retiring: boolean;
}

export interface FleetOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly placement: PlacementLimits;
  readonly hostEntry: string;
  readonly shmDirectory: string;
  readonly api: 'binding' | 'session';
  readonly copies: CopyCounter;
  /** An idle host is asked for a sign of life after this long. */
  readonly pingIntervalUs: number;
  readonly pingLimitUs: number;
  readonly unloadLimitUs: number;
  readonly tickUs: number;
}

const MEMORY_CHECK_US = 10_000_000;

export class HostFleet {
  readonly #berths = new Set<Berth>();
  readonly #guard: OrphanGuard;
  /** Per host, the work that was over its limit at the last tick. */
  readonly #late = new WeakMap<HostProcess, number>();
  #timer: Timer | undefined;
  #memoryCheckedUs = 0;
  #closed = false;

  constructor(private readonly options: FleetOptions) {
    this.#guard = new OrphanGuard(options.logger);
  }

  get size(): number {
    return this.#berths.size;
  }

  hosts(): HostProcess[] {
    return [...this.#berths].map((b) => b.host);
  }

  /**
   * A place for the instance, in a new host where placement says so. The instance counts as there from now on.
   * @throws ServingError UNAVAILABLE after `close`
   */
  place(tenant: Tenant): Berth {
    if (this.#closed) throw new ServingError('UNAVAILABLE', 'the worker is shutting down', { reason: 'shutting_down' });
    const live = [...this.#berths].filter((b) => b.host.alive && !b.retiring);
    const pool = live.filter((b) => b.pooled);
    const loads = pool.map((b) => ({
      instances: b.tenants.size,
      sameModel: [...b.tenants].filter((t) => t.modelKey === tenant.modelKey).length,
    }));
    const placement = choosePlacement(tenant.placementRequest(), live.length - pool.length, loads, this.options.placement);
    const berth = placement.host === 'pool' ? pool[placement.index]! : this.#start(placement.host === 'new_pool_host');
    berth.tenants.add(tenant);
    berth.growth.reset(this.options.clock.nowUs());
    return berth;
  }

  /** The instance leaves: what it still has under way there is finished first. Resolves when its memory is free. */
  async leave(tenant: Tenant, berth: Berth): Promise<void> {
    if (!berth.tenants.delete(tenant)) return;
    const { host } = berth;
    if (!host.alive) return host.ended;
    if (berth.tenants.size === 0 && host.idle) {
      host.kill('its last instance was unloaded');
      return host.ended;
    }
    await new Promise<void>((resolve) => {
      const sequence = host.nextSequence();
      host.send(emptyFrame(FRAME.unload, tenant.id, sequence), sequence, {
        limitUs: this.options.unloadLimitUs,
        what: 'unload',
        onAnswer: () => resolve(),
        onGone: () => resolve(),
      });
    });
    if (berth.tenants.size === 0) {
      host.kill('its last instance was unloaded');
      await host.ended;
    }
  }

  /** Kills every host and waits for the ends. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    const hosts = this.hosts();
    for (const host of hosts) host.kill('the worker is shutting down');
    await Promise.all(hosts.map((h) => h.ended));
    await this.#guard.close();
  }

  #start(pooled: boolean): Berth {
    const { clock, hostEntry, shmDirectory, api, copies } = this.options;
    const host = new HostProcess({
      clock,
      entry: hostEntry,
      shmDirectory,
      api,
      copies,
      onExit: (_, reason) => this.#onExit(berth, reason),
    });
    const berth: Berth = { host, pooled, tenants: new Set(), growth: new MemoryGrowth(clock.nowUs()), retiring: false };
    this.#berths.add(berth);
    if (host.pid !== undefined) this.#guard.add(host.pid);
    this.#arm();
    return berth;
  }

  #onExit(berth: Berth, reason: string): void {
    this.#berths.delete(berth);
    if (berth.host.pid !== undefined) this.#guard.remove(berth.host.pid);
    const tenants = [...berth.tenants];
    berth.tenants.clear();
    if (tenants.length > 0) this.options.logger.warn({ pid: berth.host.pid, reason, instances: tenants.length }, 'instance host ended');
    for (const tenant of tenants) tenant.onHostGone(berth, reason);
  }

  #arm(): void {
    if (this.#timer || this.#closed) return;
    this.#timer = this.options.clock.setTimer(this.options.tickUs, () => {
      this.#timer = undefined;
      this.#tick(this.options.clock.nowUs());
      if (this.#berths.size > 0) this.#arm();
    });
  }

  #tick(nowUs: number): void {
    const checkMemory = nowUs - this.#memoryCheckedUs >= MEMORY_CHECK_US;
    if (checkMemory) this.#memoryCheckedUs = nowUs;
    for (const berth of this.#berths) {
      if (!berth.host.alive) continue;
      this.#watch(berth.host, nowUs);
      if (checkMemory) this.#checkMemory(berth, nowUs);
    }
  }

  /**
   * A work over its limit is killed at the second tick that finds it there: after a pause of this process, answers that
   * have arrived meanwhile are read between the two.
   */
  #watch(host: HostProcess, nowUs: number): void {
    const busy = host.busy(nowUs);
    if (!busy) {
      const idleUs = nowUs - host.lastAnswerUs;
      if (idleUs < this.options.pingIntervalUs) return;
      host.shared?.trim();
      host.ping(this.options.pingLimitUs);
      return;
    }
    if (busy.forUs <= busy.work.limitUs) return;
    if (this.#late.get(host) === busy.sequence) {
      host.kill(`${busy.work.what} took longer than its limit of ${Math.round(busy.work.limitUs / 1000)} ms, so its host was ended`);
    } else {
      this.#late.set(host, busy.sequence);
    }
  }

  #checkMemory(berth: Berth, nowUs: number): void {
    const rssBytes = residentBytes(berth.host.pid);
    if (rssBytes === undefined || !berth.growth.observe(rssBytes, nowUs)) return;
    berth.growth.reset(nowUs);
    berth.retiring = true;
    for (const tenant of [...berth.tenants]) tenant.moveAway(`its host has grown to ${Math.round(rssBytes / 1048576)} MiB`);
  }
}

const PAGE_BYTES = 4096;

/** Resident memory of a process; undefined where the system does not tell. */
function residentBytes(pid: number | undefined): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return undefined;
  }
}
