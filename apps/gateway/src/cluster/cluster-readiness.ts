/**
 * Whether a gateway of a cluster welcomes requests. Invariant: what requests can sit out - a Redis or a scheduler that is
 * gone for some seconds - does not make it unready; before its first time it waits for everybody who is there.
 */
import type { Clock } from '@paceline/clock';
import type { Member } from '@paceline/protocol';

/** How long Redis, or every scheduler, may be gone. */
const GRACE_US = 5_000_000;
/** How long a new gateway waits for those that membership names: one of them may be dead and not know it. */
const FIRST_LIMIT_US = 5_000_000;

export interface ReadinessSources {
  readonly clock: Clock;
  /** How long heartbeats have failed; 0 = they do not. */
  readonly redisFailingMs: () => number;
  /** Ids of those connected now. */
  readonly links: { readonly schedulers: readonly string[]; readonly workers: readonly string[] };
  /** As membership named them last; undefined before it was read. */
  readonly members: () => readonly Member[] | undefined;
  /** Whether the routing that holds allows it. */
  readonly modelsReady: () => boolean;
}

export class ClusterReadiness {
  /** When one was connected last, as far as was looked. */
  #schedulerSeenUs = -Infinity;
  #everReady = false;
  readonly #sinceUs: number;

  constructor(private readonly sources: ReadinessSources) {
    this.#sinceUs = sources.clock.nowUs();
  }

  /** Probes may be rare: from now on it is counted how long there is none. */
  onSchedulerDown(): void {
    this.#schedulerSeenUs = this.sources.clock.nowUs();
  }

  /** What it waits for, a few words each; empty = it is ready. */
  waitsFor(): readonly string[] {
    const { clock, redisFailingMs, links, modelsReady } = this.sources;
    const nowUs = clock.nowUs();
    if (links.schedulers.length > 0) this.#schedulerSeenUs = nowUs;
    const waits: string[] = [];
    if (redisFailingMs() * 1000 > GRACE_US) waits.push('Redis');
    if (nowUs - this.#schedulerSeenUs > (this.#everReady ? GRACE_US : 0)) waits.push('a scheduler');
    if (!this.#everReady && nowUs - this.#sinceUs < FIRST_LIMIT_US) waits.push(...this.#missing());
    if (!modelsReady()) waits.push('models');
    if (waits.length === 0) this.#everReady = true;
    return waits;
  }

  get ready(): boolean {
    return this.waitsFor().length === 0;
  }

  #missing(): string[] {
    const { links, members } = this.sources;
    const known = members();
    if (known === undefined) return ['the list of members'];
    const connected = new Set([...links.schedulers, ...links.workers]);
    const missing = known.filter(({ role, id, draining }) => role !== 'gateway' && !draining && !connected.has(id));
    return missing.map(({ role, id }) => `${role} ${id}`);
  }
}
