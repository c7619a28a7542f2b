/** A gateway as a worker sees it: holds inputs, keeps what it is sent. */
import { systemClock } from '@paceline/clock';
import { formatAddress, randomId } from '@paceline/link';
import type { ReplyFrame, ServingError } from '@paceline/protocol';
import { createGatewayLinks, type GatewayLinkListener, type GatewayLinks } from '@paceline/streams';
import type { Tensor } from '@paceline/tensor';

export interface HandedBack {
  readonly attempt: number;
  readonly started: boolean;
  readonly error: ServingError;
}

export class GatewayStub implements GatewayLinkListener {
  readonly id = randomId();
  address = '';
  readonly held = new Map<number, readonly Tensor[]>();
  readonly frames = new Map<number, ReplyFrame>();
  readonly handedBack = new Map<number, HandedBack>();
  readonly #waiters = new Set<() => void>();
  readonly #links: GatewayLinks = createGatewayLinks({ clock: systemClock, id: this.id, secret: undefined }, this);

  static async start(): Promise<GatewayStub> {
    const stub = new GatewayStub();
    const { host, port } = await stub.#links.listen('127.0.0.1', 0);
    stub.address = formatAddress(host, port);
    return stub;
  }

  frame(number: number): Promise<ReplyFrame> {
    return this.#find(() => this.frames.get(number));
  }

  lost(number: number): Promise<HandedBack> {
    return this.#find(() => this.handedBack.get(number));
  }

  close(): Promise<void> {
    return this.#links.close();
  }

  onFrame(number: number, frame: ReplyFrame): void {
    this.frames.set(number, frame);
    this.#wake();
  }

  onLost(number: number, attempt: number, started: boolean, error: ServingError): void {
    this.handedBack.set(number, { attempt, started, error });
    this.#wake();
  }

  tensorsOf(number: number): readonly Tensor[] | undefined {
    return this.held.get(number);
  }

  onSchedulerUp(): void {}
  onSchedulerDown(): void {}
  onSchedulerMessage(): void {}

  #find<T>(look: () => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const attempt = (): void => {
        const found = look();
        if (found === undefined) return;
        this.#waiters.delete(attempt);
        resolve(found);
      };
      this.#waiters.add(attempt);
      attempt();
    });
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }
}
