/**
 * One link to each gateway that membership names, for a scheduler or a worker. A gateway that is not named any more may
 * only have paused: its link stays for as long as requests live. What is meant for one that is not named yet waits some
 * seconds, within a bound.
 */
import type { Clock, Timer } from '@paceline/clock';
import { LinkClient, type LinkListener, type LinkOptions, type LinkPeer, type SendOptions } from '@paceline/link';
import { ServingError, type Member, type MemberRole, type ReplyFrame, type RequestRef } from '@paceline/protocol';
import { WireWriter, writeReplyFrame } from '@paceline/protocol/wire';
import { laneOf, MessageKind } from './kinds.js';
import { linkOptions, type LinkSetup } from './link-setup.js';

/** The default timeout of requests: whoever has been away for longer has nobody left who waits. */
const LINGER_MS = 60_000;
const UNKNOWN_LIMIT_MS = 5000;
const UNKNOWN_LIMIT_BYTES = 64 * 1024 * 1024;
/** Frames above this may be refused by a gateway for their size, so what to say then is kept. */
const REFUSABLE_BYTES = 64 * 1024;

export interface GatewayListener {
  onGatewayUp(gateway: string): void;
  onGatewayDown(gateway: string, reason: string): void;
  onGatewayMessage(gateway: string, kind: number, body: Buffer): void;
}

interface Dialled {
  readonly client: LinkClient;
  linger: Timer | undefined;
}

interface Awaited {
  readonly messages: { kind: number; parts: readonly Uint8Array[]; bytes: number; options: SendOptions | undefined }[];
  readonly limit: Timer;
}

export class GatewayDialler implements LinkListener {
  readonly #clock: Clock;
  readonly #options: LinkOptions;
  readonly #dialled = new Map<string, Dialled>();
  readonly #awaited = new Map<string, Awaited>();
  readonly #up = new Set<string>();
  #awaitedBytes = 0;

  constructor(
    setup: LinkSetup,
    role: MemberRole,
    private readonly listener: GatewayListener,
  ) {
    this.#clock = setup.clock;
    this.#options = linkOptions(setup, role);
  }

  /** Ids of those that are connected. */
  get up(): readonly string[] {
    return [...this.#up];
  }

  isUp(gateway: string): boolean {
    return this.#up.has(gateway);
  }

  setMembers(members: readonly Member[]): void {
    const named = new Set<string>();
    for (const member of members) {
      if (member.role !== 'gateway') continue;
      named.add(member.id);
      this.#dial(member);
    }
    for (const [gateway, dialled] of this.#dialled) {
      if (named.has(gateway)) continue;
      dialled.linger ??= this.#clock.setTimer(LINGER_MS * 1000, () => this.#leave(gateway, dialled));
    }
  }

  /** @returns false where it cannot be kept for that gateway */
  send(gateway: string, kind: number, writer: WireWriter, options?: SendOptions): boolean {
    const bytes = writer.totalBytes;
    return this.sendParts(gateway, kind, writer.finish(), bytes, options);
  }

  /** As {@link send}, for what several gateways get. */
  sendParts(gateway: string, kind: number, parts: readonly Uint8Array[], bytes: number, options?: SendOptions): boolean {
    const dialled = this.#dialled.get(gateway);
    if (dialled) return dialled.client.send(kind, parts, bytes, options);
    if (this.#awaitedBytes + bytes > UNKNOWN_LIMIT_BYTES) return false;
    let awaited = this.#awaited.get(gateway);
    if (!awaited) {
      awaited = { messages: [], limit: this.#clock.setTimer(UNKNOWN_LIMIT_MS * 1000, () => this.#giveUp(gateway)) };
      this.#awaited.set(gateway, awaited);
    }
    awaited.messages.push({ kind, parts, bytes, options });
    this.#awaitedBytes += bytes;
    return true;
  }

  /** A result that has no room, here or there, becomes an error that has. */
  reply(ref: RequestRef, frame: ReplyFrame): void {
    const writer = new WireWriter();
    writer.varint(ref.number);
    writeReplyFrame(writer, frame);
    const lane = laneOf(ref.number);
    const bytes = writer.totalBytes;
    if (bytes <= REFUSABLE_BYTES) {
      if (this.send(ref.gateway, MessageKind.REPLY, writer, { lane })) return;
      this.#replyInstead(ref, frame, `this worker holds too many replies for gateway ${ref.gateway}`, 'reply_buffer_full');
      return;
    }
    const onRefused = (): void =>
      this.#replyInstead(ref, frame, `the reply of ${bytes} bytes is larger than the gateway takes`, 'reply_too_large');
    if (this.send(ref.gateway, MessageKind.REPLY, writer, { lane, onRefused })) return;
    this.#replyInstead(ref, frame, `this worker holds too many replies for gateway ${ref.gateway}`, 'reply_buffer_full');
  }

  async flush(limitMs: number): Promise<void> {
    const owing = [...this.#dialled].filter(
      ([gateway, { client, linger }]) => client.peer.owedBytes > 0 && (!linger || this.isUp(gateway)),
    );
    await Promise.all(owing.map(([, { client }]) => client.peer.flush(limitMs)));
  }

  async close(): Promise<void> {
    for (const { client, linger } of this.#dialled.values()) {
      linger?.cancel();
      client.close();
    }
    for (const { limit } of this.#awaited.values()) limit.cancel();
    this.#dialled.clear();
    this.#awaited.clear();
    this.#up.clear();
    this.#awaitedBytes = 0;
  }

  onUp({ identity }: LinkPeer): void {
    this.#up.add(identity.id);
    this.listener.onGatewayUp(identity.id);
  }

  onDown({ identity }: LinkPeer, reason: string): void {
    this.#up.delete(identity.id);
    this.listener.onGatewayDown(identity.id, reason);
  }

  onMessage({ identity }: LinkPeer, kind: number, body: Buffer): void {
    this.listener.onGatewayMessage(identity.id, kind, body);
  }

  #dial({ id, address }: Member): void {
    const known = this.#dialled.get(id);
    if (known) {
      known.linger?.cancel();
      known.linger = undefined;
      return;
    }
    let client: LinkClient;
    try {
      client = new LinkClient({ ...this.#options, address, expected: { role: 'gateway', id } }, this);
    } catch (error) {
      this.#options.onProblem?.(`gateway ${id} cannot be dialled: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
    this.#dialled.set(id, { client, linger: undefined });
    for (const { kind, parts, bytes, options } of this.#takeAwaited(id)) client.send(kind, parts, bytes, options);
  }

  #leave(gateway: string, { client }: Dialled): void {
    client.close();
    this.#dialled.delete(gateway);
    if (this.#up.delete(gateway)) this.listener.onGatewayDown(gateway, 'it is no member any more');
  }

  #giveUp(gateway: string): void {
    const messages = this.#takeAwaited(gateway);
    this.#options.onProblem?.(`${messages.length} messages for gateway ${gateway} dropped: no such member for ${UNKNOWN_LIMIT_MS} ms`);
    this.listener.onGatewayDown(gateway, 'no such member');
  }

  #takeAwaited(gateway: string): Awaited['messages'] {
    const awaited = this.#awaited.get(gateway);
    if (!awaited) return [];
    awaited.limit.cancel();
    this.#awaited.delete(gateway);
    for (const { bytes } of awaited.messages) this.#awaitedBytes -= bytes;
    return awaited.messages;
  }

  #replyInstead(ref: RequestRef, frame: ReplyFrame, message: string, reason: string): void {
    const error = frame.ok ? new ServingError('RESOURCE_EXHAUSTED', message, { reason }) : frame.error;
    const writer = new WireWriter();
    writer.varint(ref.number);
    writeReplyFrame(writer, { ok: false, final: true, error });
    if (this.send(ref.gateway, MessageKind.REPLY, writer, { lane: laneOf(ref.number) })) return;
    this.#options.onProblem?.(`a reply for gateway ${ref.gateway} dropped: ${message}`);
  }
}
