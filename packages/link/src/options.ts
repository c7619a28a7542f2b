/** What both ends of a link take: who this is, what proves it, how much it may hold, and whom it tells. */
import type { Clock } from '@paceline/clock';
import type { LinkIdentity } from './handshake.js';
import type { LinkPeer } from './link-peer.js';
import type { ReceiveBudget } from './receive-budget.js';

/** PEM texts. With `ca` the other side's certificate must be of that authority, on both ends. */
export interface LinkTls {
  readonly certificate?: string;
  readonly key?: string;
  readonly ca?: string;
}

export interface LinkOptions {
  readonly clock: Clock;
  readonly self: Pick<LinkIdentity, 'role' | 'id'>;
  /** Name and version of what is spoken in the messages; both ends must say the same. */
  readonly protocol: string;
  /** undefined is allowed on loopback alone. */
  readonly secret: Uint8Array | undefined;
  readonly tls?: LinkTls;
  /** Of large messages on their way in; shared by all links of the process. */
  readonly budget: ReceiveBudget;
  /** Unacknowledged bytes that are kept for one peer; default 256 MiB. */
  readonly outboxLimitBytes?: number;
  /** How long a cut connection may take to come back before the peer counts as down; default 1000 ms. */
  readonly reconnectGraceMs?: number;
  /** One sentence for the log: a connection that was refused or cut, and why. */
  readonly onProblem?: (text: string) => void;
}

export interface LinkListener {
  /** Connected, or connected again after it was down, or another process in its place: tell it what it must know. */
  onUp(peer: LinkPeer): void;
  /** Gone for longer than a reconnect takes, left, or replaced by another session. */
  onDown(peer: LinkPeer, reason: string): void;
  /** @param body the receiver's to keep; throwing cuts the connection, the message counts as delivered */
  onMessage(peer: LinkPeer, kind: number, body: Buffer): void;
}

export const OUTBOX_LIMIT_BYTES = 256 * 1024 * 1024;
export const RECONNECT_GRACE_MS = 1000;
