/**
 * The three link ports joined inside one process, for tests of what stands on them: plain calls, nothing is encoded, and
 * a test cuts and mends. As over sockets, what is sent to a gateway that is cut off or not named yet waits until it is
 * there. Time plays no part: nothing is ever given up for being late.
 */
import { ServingError, type Member, type MemberRole, type ReplyFrame, type RequestRef } from '@paceline/protocol';
import type { Tensor } from '@paceline/tensor';
import type { GatewayLinkListener, GatewayLinks, SchedulerLinkListener, SchedulerLinks, WorkerLinks } from '../link/ports.js';

export class InMemoryLinks {
  readonly #gateways = new Map<string, InMemoryGateway>();
  readonly #diallers = new Set<InMemoryDialler>();
  readonly #cut = new Set<string>();

  gateway(id: string, listener: GatewayLinkListener): GatewayLinks {
    return new InMemoryGateway(id, listener, this);
  }

  scheduler(id: string, listener: SchedulerLinkListener): SchedulerLinks {
    return new InMemoryScheduler(id, listener, this);
  }

  worker(id: string): WorkerLinks {
    return new InMemoryWorker('worker', id, this);
  }

  /** Cuts the link between a gateway and a scheduler or worker; both learn it at once. */
  cut(gateway: string, other: string): void {
    this.#cut.add(`${gateway}/${other}`);
    this.refresh();
  }

  mend(gateway: string, other: string): void {
    this.#cut.delete(`${gateway}/${other}`);
    this.refresh();
  }

  /** @internal */
  add(end: InMemoryGateway | InMemoryDialler): void {
    if (end instanceof InMemoryGateway) this.#gateways.set(end.id, end);
    else this.#diallers.add(end);
    this.refresh();
  }

  /** @internal */
  remove(end: InMemoryGateway | InMemoryDialler): void {
    if (end instanceof InMemoryGateway) this.#gateways.delete(end.id);
    else this.#diallers.delete(end);
    for (const [gateway, dialler] of end.pairs()) this.#set(gateway, dialler, false);
  }

  /** @internal */
  refresh(): void {
    for (const gateway of this.#gateways.values()) {
      for (const dialler of this.#diallers) {
        this.#set(gateway, dialler, dialler.named.has(gateway.id) && !this.#cut.has(`${gateway.id}/${dialler.id}`));
      }
    }
  }

  #set(gateway: InMemoryGateway, dialler: InMemoryDialler, joined: boolean): void {
    if (gateway.joined.has(dialler.id) === joined) return;
    if (joined) {
      gateway.joined.set(dialler.id, dialler);
      dialler.joined.set(gateway.id, gateway);
      if (dialler.role === 'scheduler') gateway.listener.onSchedulerUp(dialler.id);
      dialler.onUp(gateway);
    } else {
      gateway.joined.delete(dialler.id);
      dialler.joined.delete(gateway.id);
      if (dialler.role === 'scheduler') gateway.listener.onSchedulerDown(dialler.id);
      dialler.onDown(gateway.id);
    }
  }
}

class InMemoryGateway implements GatewayLinks {
  readonly joined = new Map<string, InMemoryDialler>();

  constructor(
    readonly id: string,
    readonly listener: GatewayLinkListener,
    private readonly links: InMemoryLinks,
  ) {}

  get schedulers(): readonly string[] {
    return this.#ids('scheduler');
  }

  get workers(): readonly string[] {
    return this.#ids('worker');
  }

  async listen(host: string, port: number): Promise<{ host: string; port: number }> {
    this.links.add(this);
    return { host, port };
  }

  tell(...[scheduler, message]: Parameters<GatewayLinks['tell']>): void {
    const other = this.joined.get(scheduler);
    if (other instanceof InMemoryScheduler) other.listener.onGatewayMessage(this.id, message);
  }

  async close(): Promise<void> {
    this.links.remove(this);
  }

  pairs(): [InMemoryGateway, InMemoryDialler][] {
    return [...this.joined.values()].map((dialler) => [this, dialler]);
  }

  #ids(role: MemberRole): readonly string[] {
    return [...this.joined.values()].filter((each) => each.role === role).map(({ id }) => id);
  }
}

class InMemoryDialler {
  readonly joined = new Map<string, InMemoryGateway>();
  named: ReadonlySet<string> = new Set();
  #waiting: { readonly gateway: string; readonly deliver: (listener: GatewayLinkListener) => void }[] = [];

  constructor(
    readonly role: MemberRole,
    readonly id: string,
    private readonly links: InMemoryLinks,
  ) {
    links.add(this);
  }

  get gateways(): readonly string[] {
    return [...this.joined.keys()];
  }

  setMembers(members: readonly Member[]): void {
    this.named = new Set([...this.named, ...members.filter(({ role }) => role === 'gateway').map(({ id }) => id)]);
    this.links.refresh();
  }

  send(ref: RequestRef, frame: ReplyFrame): void {
    this.deliver(ref.gateway, (listener) => listener.onFrame(ref.number, frame));
  }

  async close(): Promise<void> {
    this.#waiting = [];
    this.links.remove(this);
  }

  onUp(_gateway: InMemoryGateway): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) this.deliver(each.gateway, each.deliver);
  }

  onDown(_gateway: string): void {
    // A worker keeps what it has for it.
  }

  pairs(): [InMemoryGateway, InMemoryDialler][] {
    return [...this.joined.values()].map((gateway) => [gateway, this]);
  }

  protected deliver(gateway: string, deliver: (listener: GatewayLinkListener) => void): void {
    const joined = this.joined.get(gateway);
    if (joined) deliver(joined.listener);
    else this.#waiting.push({ gateway, deliver });
  }
}

class InMemoryScheduler extends InMemoryDialler implements SchedulerLinks {
  constructor(
    id: string,
    readonly listener: SchedulerLinkListener,
    links: InMemoryLinks,
  ) {
    super('scheduler', id, links);
  }

  tell(...[gateway, message]: Parameters<SchedulerLinks['tell']>): void {
    this.joined.get(gateway)?.listener.onSchedulerMessage(this.id, message);
  }

  broadcast(...[message]: Parameters<SchedulerLinks['broadcast']>): void {
    for (const gateway of this.gateways) this.tell(gateway, message);
  }

  override onUp(gateway: InMemoryGateway): void {
    super.onUp(gateway);
    this.listener.onGatewayUp(gateway.id);
  }

  override onDown(gateway: string): void {
    this.listener.onGatewayDown(gateway);
  }
}

class InMemoryWorker extends InMemoryDialler implements WorkerLinks {
  lost(...[ref, attempt, started, error]: Parameters<WorkerLinks['lost']>): void {
    this.deliver(ref.gateway, (listener) => listener.onLost(ref.number, attempt, started, error));
  }

  async pull(ref: RequestRef): Promise<readonly Tensor[]> {
    const gateway = this.joined.get(ref.gateway);
    if (!gateway) throw new ServingError('UNAVAILABLE', `gateway ${ref.gateway} cannot be reached`, { reason: 'pull_failed' });
    const tensors = gateway.listener.tensorsOf(ref.number);
    if (tensors) return tensors;
    throw new ServingError('CANCELLED', 'the gateway does not have the request any more', { reason: 'request_gone' });
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }
}
