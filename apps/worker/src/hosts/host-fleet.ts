/**
 * All instance hosts of one worker: starts them where placement says, watches them, and ends them. Its invariant: a host
 * that is neither holding nor about to hold an instance is killed, and every host that ends has told its instances.
 */
import { readFileSync } from 'node:fs';
import type { Clock, Timer } from '@paceline/clock';
import { isStopped } from '@paceline/nest-kit';
import { ServingError } from '@paceline/protocol';
import type { Logger } from '@paceline/telemetry';
import { emptyFrame, FRAME } from '../host-protocol/frames.js';
import type { CopyCounter } from '../infer/copy-counter.js';
import { MemoryGrowth, type GrowthLimits } from '../supervision/memory-growth.js';
import { HostProcess, type HostEnd } from './host-process.js';
import { HostPriority } from './host-priority.js';
import { OrphanGuard } from './orphan-guard.js';
import { choosePlacement, type PlacementLimits, type PlacementRequest, type PoolSize } from './placement.js';

/** What the fleet needs to know of an instance. */
export interface Tenant {
  readonly id: number;
  readonly modelKey: string;
  placementRequest(): PlacementRequest;
  onHostGone(berth: Berth, end: HostEnd): void;
  /** The host is to be replaced: move to another one. */
  moveAway(reason: 'memory' | 'slow', why: string): void;
}

/** One host and who is in it. */
export interface Berth {
  readonly host: HostProcess;
  /** Which pool it is in; undefined: it belongs to its only tenant. */
  readonly pool: PoolSize | undefined;
  readonly tenants: Set<Tenant>;
  readonly growth: MemoryGrowth;
  /** Resident memory at the last look, bytes; 0 before the first. */
  residentBytes: number;
  /** Its tenants are to move out, and nobody moves in. */
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
  readonly memoryCheckUs: number;
  readonly growth: GrowthLimits;
}

/** Shared memory is given back after this long without work: getting it anew costs the next large batch time. */
const TRIM_AFTER_US = 5_000_000;

export class HostFleet {
  readonly #berths = new Set<Berth>();
  /** Those of them that answer requests. */
  readonly #serving = new Set<Berth>();
  readonly #guard: OrphanGuard;
  readonly #priority = new HostPriority();
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
   * @param urgent it is missed: requests may be waiting for it
   * @throws ServingError UNAVAILABLE after `close`
   */
  place(tenant: Tenant, urgent = false): Berth {
    if (this.#closed) throw new ServingError('UNAVAILABLE', 'the worker is shutting down', { reason: 'shutting_down' });
    const live = [...this.#berths].filter((b) => b.host.alive && !b.retiring);
    const request = tenant.placementRequest();
    const dedicated = live.filter((b) => b.pool === undefined).length;
    const pool = live.filter((b) => b.pool !== undefined && b.pool === request.size);
    const loads = pool.map((b) => ({
      instances: b.tenants.size,
      sameModel: [...b.tenants].filter((t) => t.modelKey === tenant.modelKey).length,
    }));
    const placement = choosePlacement(request, dedicated, loads, this.options.placement);
    const berth =
      placement.host === 'pool' ? pool[placement.index]! : this.#start(placement.host === 'new_pool_host' ? request.size : undefined);
    // Nobody has an answer from a host that is new, and it is to keep nobody from answers.
    if (berth.tenants.size === 0 && !urgent && this.#serving.size > 0) this.#priority.lower(berth.host.pid, this.options.clock.nowUs());
    berth.tenants.add(tenant);
    berth.growth.reset(this.options.clock.nowUs());
    return berth;
  }

  /** The instance has been loaded there and will serve. */
  serves(berth: Berth): void {
    this.#serving.add(berth);
    this.#priority.restore(berth.host.pid);
  }

  /** The instance leaves: what it still has under way there is finished first. Resolves when its memory is free. */
  async leave(tenant: Tenant, berth: Berth): Promise<void> {
    if (!berth.tenants.delete(tenant)) return;
    const { host } = berth;
    if (!host.alive) return host.ended;
    if (berth.tenants.size === 0 && host.idle) {
      host.kill('ended', UNUSED);
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
      host.kill('ended', UNUSED);
      await host.ended;
    }
  }

  /** Kills every host and waits for the ends. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    const hosts = this.hosts();
    for (const host of hosts) host.kill('ended', 'the worker is shutting down');
    await Promise.all(hosts.map((h) => h.ended));
    await this.#guard.close();
  }

  #start(pool: PoolSize | undefined): Berth {
    const { clock, hostEntry, shmDirectory, api, copies, growth } = this.options;
    const host = new HostProcess({
      clock,
      entry: hostEntry,
      shmDirectory,
      api,
      copies,
      onExit: (_, end) => this.#onExit(berth, end),
    });
    this.#priority.started(host.pid);
    const berth: Berth = {
      host,
      pool,
      tenants: new Set(),
      growth: new MemoryGrowth(growth, clock.nowUs()),
      residentBytes: 0,
      retiring: false,
    };
    this.#berths.add(berth);
    if (host.pid !== undefined) this.#guard.add(host.pid);
    this.#arm();
    return berth;
  }

  #onExit(berth: Berth, end: HostEnd): void {
    this.#berths.delete(berth);
    this.#serving.delete(berth);
    this.#priority.forget(berth.host.pid);
    if (berth.host.pid !== undefined) this.#guard.remove(berth.host.pid);
    const tenants = [...berth.tenants];
    berth.tenants.clear();
    if (tenants.length > 0) {
      const { cause, text } = end;
      this.options.logger.warn({ pid: berth.host.pid, cause, reason: text, instances: tenants.length }, 'instance host ended');
    }
    for (const tenant of tenants) tenant.onHostGone(berth, end);
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
    const checkMemory = nowUs - this.#memoryCheckedUs >= this.options.memoryCheckUs;
    if (checkMemory) this.#memoryCheckedUs = nowUs;
    this.#priority.ease(nowUs);
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
      if (nowUs - host.lastWorkUs >= TRIM_AFTER_US) host.shared?.trim();
      host.ping(this.options.pingLimitUs);
      return;
    }
    const end = verdict(host, busy);
    if (!end) return;
    if (this.#late.get(host) === busy.sequence) host.kill(end.cause, end.text);
    else this.#late.set(host, busy.sequence);
  }

  #checkMemory(berth: Berth, nowUs: number): void {
    const rssBytes = residentBytes(berth.host.pid);
    if (rssBytes === undefined) return;
    berth.residentBytes = rssBytes;
    berth.retiring ||= berth.growth.observe(rssBytes, nowUs);
    if (!berth.retiring) return;
    // Again at each look: a replacement may have failed.
    for (const tenant of [...berth.tenants]) tenant.moveAway('memory', `its host has grown to ${Math.round(rssBytes / 1048576)} MiB`);
  }
}

const UNUSED = 'its last instance was unloaded';

/** What is wrong with a host that is busy with `work`, if anything. */
function verdict(host: HostProcess, { work, sequence, forUs }: NonNullable<ReturnType<HostProcess['busy']>>): HostEnd | undefined {
  const ms = (us: number) => `${Math.round(us / 1000)} ms`;
  if (forUs > work.limitUs) {
    const text = `${work.what} took longer than its limit of ${ms(work.limitUs)}, so its host was ended`;
    // A process that was not let run tells nothing of how long its work takes.
    if (isStopped(host.pid)) return { cause: 'unresponsive', text: `${text}: a signal had stopped it` };
    return { cause: work.what === 'ping' ? 'unresponsive' : 'hung', text };
  }
  if (work.beginLimitUs === undefined || forUs <= work.beginLimitUs || host.hasBegun(sequence)) return undefined;
  return { cause: 'unresponsive', text: `${work.what} had not begun after ${ms(work.beginLimitUs)}, so its host was ended` };
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
