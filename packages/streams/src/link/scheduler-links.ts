/** The scheduler's end: the control link to each gateway, and the refusals that travel beside it. */
import type { SendOptions } from '@paceline/link';
import type { Member, ReplyFrame, RequestRef, SchedulerMessage } from '@paceline/protocol';
import { WireWriter } from '@paceline/protocol/wire';
import { readGatewayMessage, writeSchedulerMessage } from './control-codec.js';
import { GatewayDialler, type GatewayListener } from './gateway-dialler.js';
import { CONTROL_LANE, MessageKind, unexpected } from './kinds.js';
import type { LinkSetup } from './link-setup.js';
import type { SchedulerLinkListener, SchedulerLinks } from './ports.js';

/** @param listener called from the event loop, never within a call of the links */
export function createSchedulerLinks(setup: LinkSetup, listener: SchedulerLinkListener): SchedulerLinks {
  return new TcpSchedulerLinks(setup, listener);
}

/** The next one says it better. */
const PRESSURE: SendOptions = { reliable: false, lane: CONTROL_LANE };
const CONTROL: SendOptions = { lane: CONTROL_LANE };

class TcpSchedulerLinks implements SchedulerLinks, GatewayListener {
  readonly #dialler: GatewayDialler;

  constructor(
    private readonly setup: LinkSetup,
    private readonly listener: SchedulerLinkListener,
  ) {
    this.#dialler = new GatewayDialler(setup, 'scheduler', this);
  }

  get gateways(): readonly string[] {
    return this.#dialler.up;
  }

  setMembers(members: readonly Member[]): void {
    this.#dialler.setMembers(members);
  }

  send(ref: RequestRef, frame: ReplyFrame): void {
    this.#dialler.reply(ref, frame);
  }

  tell(gateway: string, message: SchedulerMessage): void {
    this.#tell([gateway], message);
  }

  broadcast(message: SchedulerMessage): void {
    this.#tell(this.#dialler.up, message);
  }

  close(): Promise<void> {
    return this.#dialler.close();
  }

  onGatewayUp(gateway: string): void {
    this.listener.onGatewayUp(gateway);
  }

  onGatewayDown(gateway: string): void {
    this.listener.onGatewayDown(gateway);
  }

  onGatewayMessage(gateway: string, kind: number, body: Buffer): void {
    if (kind !== MessageKind.GATEWAY) throw unexpected('gateway', kind);
    this.listener.onGatewayMessage(gateway, readGatewayMessage(body));
  }

  /** Encoded once, however many there are. One that is not connected is told all it must know when it is. */
  #tell(gateways: readonly string[], message: SchedulerMessage): void {
    const writer = new WireWriter();
    writeSchedulerMessage(writer, message);
    const bytes = writer.totalBytes;
    const parts = writer.finish();
    const options = message.kind === 'pressure' ? PRESSURE : CONTROL;
    for (const gateway of gateways) {
      if (!this.#dialler.isUp(gateway) || this.#dialler.sendParts(gateway, MessageKind.SCHEDULER, parts, bytes, options)) continue;
      this.setup.onProblem?.(`word of '${message.kind}' for gateway ${gateway} dropped: too much waits for it`);
    }
  }
}
