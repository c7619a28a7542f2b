/**
 * The independent checker: every request that a client sent stands here until it has ended, and how it ended is judged by
 * what was known to be broken while it was under way. It believes nothing that the cluster says of itself. Invariant: a
 * request ends exactly once, as right, as excused, or as a breach; one that never ends is a breach, too.
 */
import type { Outcome } from './clients.js';

/** Ways to end without an answer that an excuse can allow. */
export type Failure = 'refused' | 'cut' | 'unseen' | 'unreached';

/** Something is broken on purpose: requests that were under way meanwhile may end so. */
export interface Excuse {
  readonly what: string;
  readonly allows: readonly Failure[];
  /** Requests of this gateway only; undefined = of all. */
  readonly gateway: number | undefined;
  readonly fromMs: number;
  /** Infinity until it is over. */
  untilMs: number;
  /** Requests that it has excused as unseen. */
  unseen: number;
}

/** A request under way. */
export interface OpenRequest {
  readonly gateway: number;
  readonly model: string;
  readonly id: string;
  /** Which kind of client sent it. */
  readonly by: string;
  readonly sentAtMs: number;
}

/** Errors that say that a request cannot be served now. Any other one needs a reason that no fault of a machine is. */
const ALLOWED_CODES: ReadonlySet<string> = new Set(['UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED']);
/** How much later than its deadline the error of a request may come. */
const LATE_BY_MS = 1000;
const MOST_BREACHES = 50;
/** Of one excuse: a port that closes in good order loses what reached it in that very moment, and no more. */
const MOST_UNSEEN = 1;

export class Books {
  readonly breaches: string[] = [];
  /** Failures that were excused: how often, by what was broken, how it ended and what was said. */
  readonly excused = new Map<string, number>();
  readonly #open = new Set<OpenRequest>();
  readonly #excuses: Excuse[] = [];
  readonly #standstills: { readonly gateway: number; readonly fromMs: number; untilMs: number }[] = [];
  /** When right answers came, in order, and to whom. */
  readonly #right: { readonly atMs: number; readonly gateway: number; readonly model: string }[] = [];
  #waiters: { readonly holds: () => boolean; resolve(): void }[] = [];

  /** @param deadlineMs how long the cluster may take for a request */
  constructor(private readonly deadlineMs: number) {}

  get right(): number {
    return this.#right.length;
  }

  get open(): number {
    return this.#open.size;
  }

  begin(gateway: number, model: string, id: string, by: string): OpenRequest {
    const request = { gateway, model, id, by, sentAtMs: performance.now() };
    this.#open.add(request);
    return request;
  }

  end(request: OpenRequest, outcome: Outcome): void {
    const nowMs = performance.now();
    if (!this.#open.delete(request)) throw new Error(`request ${request.id} ended twice`);
    const tookMs = nowMs - request.sentAtMs;
    const limitMs = this.limitMs(request, nowMs);
    if (tookMs > limitMs) this.#breach(request, `ended (${outcome.kind}) later than ${limitMs.toFixed(0)} ms`);
    else if (outcome.kind === 'wrong') this.#breach(request, outcome.text);
    else if (outcome.kind !== 'right') this.#judge(request, outcome, nowMs);
    if (outcome.kind === 'right') this.#right.push({ atMs: nowMs, gateway: request.gateway, model: request.model });
    this.#waiters = this.#waiters.filter((waiter) => !waiter.holds() || waiter.resolve());
  }

  /** How long it may take: its deadline, a little more, and the time that its gateway was not let run. */
  limitMs({ gateway, sentAtMs }: OpenRequest, nowMs = performance.now()): number {
    const stood = this.#standstills
      .filter((standstill) => standstill.gateway === gateway)
      .map(({ fromMs, untilMs }) => Math.max(0, Math.min(nowMs, untilMs) - Math.max(sentAtMs, fromMs)));
    return this.deadlineMs + LATE_BY_MS + stood.reduce((sum, ms) => sum + ms, 0);
  }

  /** From now on; {@link forgive} ends it. */
  excuse(what: string, allows: readonly Failure[], gateway?: number): Excuse {
    const excuse: Excuse = { what, allows, gateway, fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY, unseen: 0 };
    this.#excuses.push(excuse);
    return excuse;
  }

  /** What was broken works again: requests sent from now on are not excused by it. */
  over(excuse: Excuse): void {
    excuse.untilMs = performance.now();
  }

  /** That gateway is stopped from now on: its clocks run, it does not. @returns to be called when it runs again */
  standstill(gateway: number): () => void {
    const standstill = { gateway, fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY };
    this.#standstills.push(standstill);
    return () => void (standstill.untilMs = performance.now());
  }

  /** Resolves after `count` more right answers, of that gateway and to that model where named. */
  answered(count: number, gateway?: number, model?: string): Promise<void> {
    const from = this.#right.length;
    const holds = (): boolean =>
      this.#right.slice(from).filter((r) => (gateway ?? r.gateway) === r.gateway && (model ?? r.model) === r.model).length >= count;
    return new Promise((resolve) => this.#waiters.push({ holds, resolve }));
  }

  /** The longest time without a right answer since then, of that model where named. */
  longestGapMs(sinceMs: number, model?: string): number {
    const moments = this.#right.filter(({ atMs, model: of }) => atMs >= sinceMs && (model ?? of) === of).map(({ atMs }) => atMs);
    return [...moments, performance.now()].reduce(({ last, gap }, atMs) => ({ last: atMs, gap: Math.max(gap, atMs - last) }), {
      last: sinceMs,
      gap: 0,
    }).gap;
  }

  /** Failures since the books were opened, in words; nothing where there were none. */
  summary(): string {
    return [...this.excused].map(([what, count]) => `  ${count} x ${what}`).join('\n');
  }

  #judge(request: OpenRequest, outcome: Exclude<Outcome, { kind: 'right' | 'wrong' }>, nowMs: number): void {
    const text = outcome.kind === 'refused' ? `refused with ${outcome.code}: ${outcome.text}` : outcome.kind;
    const excuse = this.#excuses.find(
      (each) =>
        covers(each, outcome.kind) &&
        (each.gateway ?? request.gateway) === request.gateway &&
        each.fromMs <= nowMs &&
        each.untilMs >= request.sentAtMs,
    );
    if (excuse === undefined) return this.#breach(request, text);
    if (outcome.kind === 'refused' && !ALLOWED_CODES.has(outcome.code)) return this.#breach(request, `${text} (${excuse.what})`);
    if (outcome.kind === 'unseen') excuse.unseen += 1;
    const key = `${excuse.what}: ${text.replace(/\d+(\.\d+)?/g, 'N')}`;
    this.excused.set(key, (this.excused.get(key) ?? 0) + 1);
  }

  #breach({ gateway, model, id, by, sentAtMs }: OpenRequest, text: string): void {
    if (this.breaches.length >= MOST_BREACHES) return;
    const agoMs = (performance.now() - sentAtMs).toFixed(0);
    const when = new Date().toISOString();
    this.breaches.push(`${when} ${model} ${id} by ${by} to gateway-${gateway + 1}, sent ${agoMs} ms before: ${text}`);
  }
}

/** What may be cut may be lost unseen, too; else only so much may. */
function covers({ allows, unseen }: Excuse, failure: Failure): boolean {
  if (failure !== 'unseen') return allows.includes(failure);
  return allows.includes('cut') || (allows.includes('unseen') && unseen < MOST_UNSEEN);
}
