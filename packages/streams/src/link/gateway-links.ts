/** The gateway's end of all links: hands replies and control messages to the gateway, and answers pulls. */
import { LinkServer, type HostPort, type LinkListener, type LinkPeer } from '@paceline/link';
import type { GatewayMessage } from '@paceline/protocol';
import { readReplyFrame, readServingError, WireReader, WireWriter, writeTensors } from '@paceline/protocol/wire';
import type { Tensor } from '@paceline/tensor';
import { readSchedulerMessage, writeGatewayMessage } from './control-codec.js';
import { CONTROL_LANE, MessageKind, PullOutcome, unexpected } from './kinds.js';
import { linkOptions, type LinkSetup } from './link-setup.js';
import type { GatewayLinkListener, GatewayLinks } from './ports.js';
import { RoutedModels } from './routing-codec.js';

/** @param listener called from the event loop, never within a call of the links */
export function createGatewayLinks(setup: LinkSetup, listener: GatewayLinkListener): GatewayLinks {
  return new TcpGatewayLinks(setup, listener);
}

class TcpGatewayLinks implements GatewayLinks, LinkListener {
  readonly #server: LinkServer;
  readonly #schedulers = new Map<string, LinkPeer>();
  readonly #workers = new Map<string, LinkPeer>();
  /** Of whichever scheduler publishes: a new placement owner routes the same models. */
  readonly #models = new RoutedModels();

  constructor(
    private readonly setup: LinkSetup,
    private readonly listener: GatewayLinkListener,
  ) {
    this.#server = new LinkServer(linkOptions(setup, 'gateway'), this);
  }

  get schedulers(): readonly string[] {
    return [...this.#schedulers.keys()];
  }

  get workers(): readonly string[] {
    return [...this.#workers.keys()];
  }

  listen(host: string, port: number): Promise<HostPort> {
    return this.#server.listen(host, port);
  }

  tell(scheduler: string, message: GatewayMessage): void {
    const peer = this.#schedulers.get(scheduler);
    if (!peer) return;
    const writer = new WireWriter();
    writeGatewayMessage(writer, message);
    if (send(peer, MessageKind.GATEWAY, writer, { lane: CONTROL_LANE })) return;
    this.setup.onProblem?.(`word of '${message.kind}' for scheduler ${scheduler} dropped: too much waits for it`);
  }

  close(): Promise<void> {
    this.#schedulers.clear();
    this.#workers.clear();
    return this.#server.close();
  }

  onUp(peer: LinkPeer): void {
    const { role, id } = peer.identity;
    if (role === 'worker') this.#workers.set(id, peer);
    if (role !== 'scheduler') return;
    this.#schedulers.set(id, peer);
    this.listener.onSchedulerUp(id);
  }

  onDown(peer: LinkPeer): void {
    const { role, id } = peer.identity;
    if (role === 'worker') this.#workers.delete(id);
    if (role !== 'scheduler') return;
    // It is told anew when it comes back; a worker, which may not even have noticed, still gets what it asked for.
    peer.forget();
    this.#schedulers.delete(id);
    this.listener.onSchedulerDown(id);
  }

  onMessage(peer: LinkPeer, kind: number, body: Buffer): void {
    const { role, id } = peer.identity;
    if (role === 'worker') this.#onWorkerMessage(peer, kind, body);
    else if (role !== 'scheduler') throw unexpected(role, kind);
    else if (kind === MessageKind.REPLY) this.#onReply(body);
    else if (kind === MessageKind.SCHEDULER) this.listener.onSchedulerMessage(id, readSchedulerMessage(body, this.#models));
    else throw unexpected(role, kind);
  }

  #onWorkerMessage(peer: LinkPeer, kind: number, body: Buffer): void {
    switch (kind) {
      case MessageKind.REPLY:
        this.#onReply(body);
        return;
      case MessageKind.LOST: {
        const reader = new WireReader(body);
        const number = reader.varint('request number');
        const attempt = reader.varint('attempt');
        const started = reader.u8('started') !== 0;
        this.listener.onLost(number, attempt, started, readServingError(reader));
        return;
      }
      case MessageKind.PULL: {
        const reader = new WireReader(body);
        const pull = reader.varint('pull');
        this.#answerPull(peer, pull, this.listener.tensorsOf(reader.varint('request number')));
        return;
      }
      default:
        throw unexpected('worker', kind);
    }
  }

  #onReply(body: Buffer): void {
    const reader = new WireReader(body);
    const number = reader.varint('request number');
    const frame = readReplyFrame(reader);
    reader.end('reply');
    this.listener.onFrame(number, frame);
  }

  #answerPull(peer: LinkPeer, pull: number, tensors: readonly Tensor[] | undefined): void {
    const refuse = (outcome: number): void => {
      const writer = new WireWriter();
      writer.varint(pull);
      writer.u8(outcome);
      // Where not even this fits, the worker's own limit ends the pull.
      send(peer, MessageKind.PULLED, writer);
    };
    if (!tensors) {
      refuse(PullOutcome.GONE);
      return;
    }
    const writer = new WireWriter();
    writer.varint(pull);
    writer.u8(PullOutcome.FOUND);
    writeTensors(writer, tensors);
    const noRoom = (): void => refuse(PullOutcome.NO_ROOM);
    if (!send(peer, MessageKind.PULLED, writer, { onRefused: noRoom })) noRoom();
  }
}

function send(peer: LinkPeer, kind: number, writer: WireWriter, options?: Parameters<LinkPeer['send']>[3]): boolean {
  const bytes = writer.totalBytes;
  return peer.send(kind, writer.finish(), bytes, options);
}
