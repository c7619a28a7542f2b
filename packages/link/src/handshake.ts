/**
 * Proves to two processes that both know the cluster secret, over any channel that carries messages: the link's frames
 * and the worker's gRPC stream alike. Four messages: hello, challenge, proof, welcome. Each proof is an HMAC-SHA256 over
 * both first messages as they were sent, so that roles, ids, sessions and nonces are bound into it and nothing can be
 * replayed or reflected. The dialer proves first: a stranger learns nothing that was made with the secret.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { MemberRole } from '@paceline/protocol';

/** Who is at one end. */
export interface LinkIdentity {
  readonly role: MemberRole;
  /** Of the process, as in membership: 16 hex digits. */
  readonly id: string;
  /** Of the object that keeps the state of the connection, fresh whenever that state is: 16 hex digits. */
  readonly session: string;
}

/** The other side is not who it should be, or does not speak this protocol. The text names what was expected. */
export class HandshakeError extends Error {
  override readonly name = 'HandshakeError';
}

export interface HandshakeOptions {
  readonly side: 'dialer' | 'listener';
  /** What is spoken afterwards, with its version, e.g. `paceline-link/1`; both sides must name the same. */
  readonly protocol: string;
  /** undefined = none is configured; the other side must have none either. */
  readonly secret: Uint8Array | undefined;
  readonly self: LinkIdentity;
  /**
   * Of a dialer: who has to answer, and where it was dialled. Whoever else does is left before anything is proved, so that
   * it never takes the connection for one that replaces another.
   */
  readonly expected?: Pick<LinkIdentity, 'role' | 'id'> & { readonly address: string };
}

/** No message of a handshake is larger, bytes. */
export const HANDSHAKE_MESSAGE_MAX_BYTES = 1024;

const ID = /^[0-9a-f]{16}$/;
const NONCE = /^[0-9a-f]{32}$/;
const MAC = /^[0-9a-f]{64}$/;
const ROLES: readonly string[] = ['gateway', 'scheduler', 'worker'] satisfies MemberRole[];

/** A fresh id of a process or a session: 64 random bits as 16 hex digits. */
export function randomId(): string {
  return randomBytes(8).toString('hex');
}

/** One side of one handshake. Feed it what arrives, send what it returns, until {@link Handshake.peer} is known. */
export class Handshake {
  #peer: LinkIdentity | undefined;
  #claimed: LinkIdentity | undefined;
  #mine: Uint8Array | undefined;
  #theirs: Uint8Array | undefined;
  #somebodyElse = false;

  constructor(private readonly options: HandshakeOptions) {}

  /** Known once the other side has proved itself; a listener knows it when it returns its last message. */
  get peer(): LinkIdentity | undefined {
    return this.#peer;
  }

  /** Another process answered than the one that was expected. */
  get somebodyElse(): boolean {
    return this.#somebodyElse;
  }

  /** @returns the dialer's first message; undefined for a listener, which waits */
  start(): Uint8Array | undefined {
    return this.options.side === 'dialer' ? this.#introduce() : undefined;
  }

  /**
   * @returns the message to send now, if any
   * @throws HandshakeError when the connection must be cut; {@link refusal} makes a message that tells the other side why
   */
  receive(message: Uint8Array): Uint8Array | undefined {
    if (this.#peer) throw new HandshakeError('a message of a handshake after its end');
    const fields = parse(message);
    if (typeof fields['refused'] === 'string') throw new HandshakeError(`refused by the other side: ${printable(fields['refused'])}`);
    if (!this.#claimed) {
      this.#claimed = this.#readIntroduction(fields);
      this.#theirs = Uint8Array.from(message);
      return this.options.side === 'listener' ? this.#introduce() : encode({ mac: this.#mac('dialer').toString('hex') });
    }
    this.#verify(fields['mac']);
    this.#peer = this.#claimed;
    return this.options.side === 'listener' ? encode({ mac: this.#mac('listener').toString('hex') }) : undefined;
  }

  #introduce(): Uint8Array {
    const { protocol, secret, self } = this.options;
    const nonce = randomBytes(16).toString('hex');
    this.#mine = encode({ protocol, secured: secret !== undefined, role: self.role, id: self.id, session: self.session, nonce });
    return this.#mine;
  }

  #readIntroduction(fields: Readonly<Record<string, unknown>>): LinkIdentity {
    const { protocol, secured, role, id, session, nonce } = fields;
    if (protocol !== this.options.protocol) {
      throw new HandshakeError(`expected the protocol '${this.options.protocol}', found '${printable(protocol)}'`);
    }
    if (secured !== (this.options.secret !== undefined)) {
      throw new HandshakeError(secured === true ? 'only the other side has a cluster secret' : 'the other side has no cluster secret');
    }
    if (typeof role !== 'string' || !ROLES.includes(role)) throw new HandshakeError(`unknown role '${printable(role)}'`);
    if (typeof id !== 'string' || !ID.test(id)) throw new HandshakeError('the id is not 16 hex digits');
    if (typeof session !== 'string' || !ID.test(session)) throw new HandshakeError('the session is not 16 hex digits');
    if (typeof nonce !== 'string' || !NONCE.test(nonce)) throw new HandshakeError('the nonce is not 32 hex digits');
    const { expected } = this.options;
    this.#somebodyElse = expected !== undefined && (role !== expected.role || id !== expected.id);
    if (expected && this.#somebodyElse)
      throw new HandshakeError(`expected ${expected.role} ${expected.id} at ${expected.address}, found ${role} ${id}`);
    return { role: role as MemberRole, id, session };
  }

  #verify(mac: unknown): void {
    const from = this.options.side === 'listener' ? 'dialer' : 'listener';
    if (typeof mac !== 'string' || !MAC.test(mac)) throw new HandshakeError('expected a proof of the cluster secret');
    if (!timingSafeEqual(Buffer.from(mac, 'hex'), this.#mac(from))) throw new HandshakeError('the other side has another cluster secret');
  }

  #mac(prover: HandshakeOptions['side']): Buffer {
    const [hello, challenge] = this.options.side === 'dialer' ? [this.#mine, this.#theirs] : [this.#theirs, this.#mine];
    const hmac = createHmac('sha256', this.options.secret ?? new Uint8Array());
    for (const part of [Buffer.from(prover), hello ?? new Uint8Array(), challenge ?? new Uint8Array()]) {
      hmac.update(`${part.byteLength}:`).update(part);
    }
    return hmac.digest();
  }
}

/** The message that tells the other side why it is cut off. */
export function refusal(error: HandshakeError): Uint8Array {
  return encode({ refused: error.message.slice(0, 200) });
}

function encode(fields: Readonly<Record<string, unknown>>): Uint8Array {
  return Buffer.from(JSON.stringify(fields));
}

function parse(message: Uint8Array): Readonly<Record<string, unknown>> {
  if (message.byteLength > HANDSHAKE_MESSAGE_MAX_BYTES) throw new HandshakeError(`a message of ${message.byteLength} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(message).toString('utf8'));
  } catch {
    throw new HandshakeError('a message that is not of this handshake');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new HandshakeError('a message that is not of this handshake');
  return value as Readonly<Record<string, unknown>>;
}

/** Text of a stranger, fit for a log. */
function printable(value: unknown): string {
  return String(value)
    .slice(0, 200)
    .replace(/[^\x20-\x7e]/g, '?');
}
