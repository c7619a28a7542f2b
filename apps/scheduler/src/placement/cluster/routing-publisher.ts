/**
 * Tells every gateway what is routed where, and knows which of them go by it. Invariants: under one epoch generations
 * only grow; nothing is published before {@link RoutingPublisher.open} or once the right to decide is over; a change is
 * out within {@link PUBLISH_INTERVAL_US}.
 */
import type { Clock, Timer } from '@paceline/clock';
import type { Epoch, Routing } from '@paceline/protocol';
import type { SchedulerLinks } from '@paceline/streams';
import { isSameContent, type RoutingContent } from './routing-content.js';

/** Changes that come closer together than this go out as one. */
const PUBLISH_INTERVAL_US = 50_000;
/** A gateway that does not answer for this long goes by an old routing at its own risk: its requests are refused then. */
const ACK_LIMIT_US = 5_000_000;

export interface RoutingPublisherPorts {
  readonly clock: Clock;
  readonly links: Pick<SchedulerLinks, 'tell' | 'gateways'>;
  readonly epoch: Epoch;
  valid(): boolean;
  content(): RoutingContent;
  /** A gateway did not acknowledge in time. */
  onSilent(gateway: string): void;
}

interface Waiting {
  readonly generation: number;
  readonly gateways: Set<string>;
  readonly timer: Timer;
  resolve(): void;
}

export class RoutingPublisher {
  #routing: Routing | undefined;
  #open = false;
  #closed = false;
  #dirty = false;
  #lastUs = -Infinity;
  #timer: Timer | undefined;
  readonly #acknowledged = new Map<string, number>();
  readonly #waiting = new Set<Waiting>();
  /** Gateways that did not acknowledge in time, and have not acknowledged anything since. */
  readonly #silent = new Set<string>();

  constructor(private readonly ports: RoutingPublisherPorts) {}

  /** Publishes for the first time; {@link changed} does from now on. */
  open(): void {
    this.#open = true;
    this.#dirty = true;
    this.#publish();
  }

  /** The content may be different now. */
  changed(): void {
    this.#dirty = true;
    if (!this.#open || this.#closed || this.#timer !== undefined) return;
    const waitUs = Math.max(0, this.#lastUs + PUBLISH_INTERVAL_US - this.ports.clock.nowUs());
    this.#timer = this.ports.clock.setTimer(waitUs, () => this.#publish());
  }

  /**
   * Resolves when every gateway goes by the present content: those that leave do not count, nor those that do not answer
   * within 5 s, once. Resolves at once while nothing is published.
   */
  settled(): Promise<void> {
    if (!this.#open || this.#closed) return Promise.resolve();
    if (this.#dirty) this.#publish();
    const routing = this.#routing;
    if (routing === undefined) return Promise.resolve();
    const gateways = new Set(
      this.ports.links.gateways.filter((id) => !this.#silent.has(id) && (this.#acknowledged.get(id) ?? 0) < routing.generation),
    );
    if (gateways.size === 0) return Promise.resolve();
    return new Promise<void>((resolve) => {
      const timer = this.ports.clock.setTimer(ACK_LIMIT_US, () => {
        for (const gateway of waiting.gateways) {
          this.#silent.add(gateway);
          this.ports.onSilent(gateway);
        }
        this.#end(waiting);
      });
      const waiting: Waiting = { generation: routing.generation, gateways, timer, resolve };
      this.#waiting.add(waiting);
    });
  }

  onGatewayUp(gateway: string): void {
    this.#acknowledged.delete(gateway);
    if (this.#routing !== undefined && !this.#closed && this.ports.valid()) {
      this.ports.links.tell(gateway, { kind: 'routing', routing: this.#routing });
    }
  }

  onGatewayDown(gateway: string): void {
    this.#acknowledged.delete(gateway);
    this.#silent.delete(gateway);
    for (const waiting of this.#waiting) this.#strike(waiting, gateway);
  }

  /** It goes by that generation of this publisher's epoch. */
  onRouted(gateway: string, generation: number): void {
    this.#silent.delete(gateway);
    this.#acknowledged.set(gateway, Math.max(generation, this.#acknowledged.get(gateway) ?? 0));
    for (const waiting of this.#waiting) if (waiting.generation <= generation) this.#strike(waiting, gateway);
  }

  /** Nothing more is published; who waits is let go. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    for (const waiting of this.#waiting) this.#end(waiting);
  }

  #publish(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#closed || !this.ports.valid()) return;
    this.#dirty = false;
    const content = this.ports.content();
    if (this.#routing !== undefined && isSameContent(content, this.#routing)) return;
    this.#lastUs = this.ports.clock.nowUs();
    this.#routing = { ...content, epoch: this.ports.epoch, generation: (this.#routing?.generation ?? 0) + 1 };
    for (const gateway of this.ports.links.gateways) this.ports.links.tell(gateway, { kind: 'routing', routing: this.#routing });
  }

  #strike(waiting: Waiting, gateway: string): void {
    if (waiting.gateways.delete(gateway) && waiting.gateways.size === 0) this.#end(waiting);
  }

  #end(waiting: Waiting): void {
    waiting.timer.cancel();
    this.#waiting.delete(waiting);
    waiting.resolve();
  }
}
