/** What the links of every role are made of. */
import type { Clock } from '@paceline/clock';
import { ReceiveBudget, type LinkOptions, type LinkTls } from '@paceline/link';
import type { MemberRole } from '@paceline/protocol';
import { LINK_PROTOCOL } from './kinds.js';

export interface LinkSetup {
  readonly clock: Clock;
  /** Of this process, as in membership. */
  readonly id: string;
  /** The cluster secret; undefined is allowed where every address is loopback. */
  readonly secret: Uint8Array | undefined;
  readonly tls?: LinkTls;
  /** Bytes of messages above 64 KiB that may be arriving at once; default 1 GiB. A larger one is refused. */
  readonly receiveLimitBytes?: number;
  /** Bytes that are kept for one process until it has them; default 256 MiB. */
  readonly outboxLimitBytes?: number;
  /** How long a cut connection may take to come back unnoticed; default 1000. */
  readonly reconnectGraceMs?: number;
  /** One sentence for the log. */
  readonly onProblem?: (text: string) => void;
}

const RECEIVE_LIMIT_BYTES = 1024 ** 3;

export function linkOptions(setup: LinkSetup, role: MemberRole): LinkOptions {
  const { clock, id, secret, tls, outboxLimitBytes, reconnectGraceMs, onProblem } = setup;
  return {
    clock,
    self: { role, id },
    protocol: LINK_PROTOCOL,
    secret,
    budget: new ReceiveBudget(setup.receiveLimitBytes ?? RECEIVE_LIMIT_BYTES),
    ...(tls ? { tls } : {}),
    ...(outboxLimitBytes === undefined ? {} : { outboxLimitBytes }),
    ...(reconnectGraceMs === undefined ? {} : { reconnectGraceMs }),
    ...(onProblem ? { onProblem } : {}),
  };
}
