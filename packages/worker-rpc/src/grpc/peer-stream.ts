/**
 * One stream between a scheduler and a worker, the same at both ends: first the handshake, then words, with a look at
 * whether the other end lives. It ends exactly once, with a reason; nothing is read or sent after that.
 */
import type { Clock, Timer } from '@paceline/clock';
import { Handshake, HandshakeError, refusal, type HandshakeOptions, type LinkIdentity } from '@paceline/link';
import { WireReader, WireFormatError } from '@paceline/protocol/wire';
import { Liveness } from './liveness.js';
import { Outbox, type RawSink } from './outbox.js';
import { STREAM_PROTOCOL } from './service.js';

/** A stream of raw messages, either end. */
export interface RawStream extends RawSink {
  onMessage(then: (message: Buffer) => void): void;
  /** The other side or the connection ended it. */
  onEnd(then: (reason: string) => void): void;
  /** Ends it from this side, telling why. */
  close(reason: string): void;
}

/** Who this end is, and how it proves it. */
export type PeerIdentity = Pick<HandshakeOptions, 'secret' | 'self' | 'expected'>;

export interface PeerEvents {
  /** The other end has proved itself. @returns why it is refused nevertheless; undefined = welcome */
  onPeer(peer: LinkIdentity): string | undefined;
  /** @throws WireFormatError where the fields are not as they should be */
  onWord(kind: number, reader: WireReader): void;
  onEnd(reason: string): void;
}

/** Word 0 of both directions: nothing but a sign of life. */
const PING = 0;
const HANDSHAKE_LIMIT_US = 5_000_000;

export class PeerStream {
  readonly outbox: Outbox;
  readonly #handshake: Handshake;
  readonly #liveness: Liveness;
  readonly #handshakeLimit: Timer;
  #sentBefore = 0;
  #ready = false;
  #ended = false;

  constructor(
    private readonly raw: RawStream,
    side: HandshakeOptions['side'],
    identity: PeerIdentity,
    private readonly events: PeerEvents,
    clock: Clock,
  ) {
    this.outbox = new Outbox(raw, clock);
    this.#handshake = new Handshake({ ...identity, side, protocol: STREAM_PROTOCOL });
    this.#liveness = new Liveness(
      clock,
      () => this.#ping(),
      () => this.end('nothing was heard of the other side for some seconds'),
    );
    this.#handshakeLimit = clock.setTimer(HANDSHAKE_LIMIT_US, () => this.end('the handshake took too long'));
    raw.onMessage((message) => this.#onMessage(message));
    raw.onEnd((reason) => this.#over(reason));
    const first = this.#handshake.start();
    if (first) raw.write(Buffer.from(first));
  }

  end(reason: string): void {
    if (this.#ended) return;
    this.raw.close(reason);
    this.#over(reason);
  }

  #onMessage(message: Buffer): void {
    if (this.#ended) return;
    this.#liveness.heard();
    try {
      if (this.#ready) this.#readWords(message);
      else this.#shakeHands(message);
    } catch (error) {
      if (error instanceof HandshakeError) {
        this.raw.write(Buffer.from(refusal(error)));
        this.end(error.message);
      } else if (error instanceof WireFormatError) this.end(`a message that cannot be read: ${error.message}`);
      else throw error;
    }
  }

  #shakeHands(message: Buffer): void {
    const answer = this.#handshake.receive(message);
    if (answer) this.raw.write(Buffer.from(answer));
    const { peer } = this.#handshake;
    if (!peer) return;
    this.#handshakeLimit.cancel();
    this.#ready = true;
    const refused = this.events.onPeer(peer);
    if (refused !== undefined) this.end(refused);
  }

  #readWords(message: Buffer): void {
    const reader = new WireReader(message);
    while (reader.remaining > 0 && !this.#ended) {
      const kind = reader.u8('word');
      if (kind !== PING) this.events.onWord(kind, reader);
    }
  }

  #ping(): void {
    const { sentCount } = this.outbox;
    if (this.#ready && sentCount === this.#sentBefore) this.outbox.add(PING);
    this.#sentBefore = sentCount;
  }

  #over(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#handshakeLimit.cancel();
    this.#liveness.stop();
    this.outbox.close();
    this.events.onEnd(reason);
  }
}
