/** What the messages of the links mean, by their kind, and the lanes that keep some of them in order. */
import type { MemberRole } from '@paceline/protocol';

/** Spoken by gateways, schedulers and workers over their links; rises with any change that old processes cannot read. */
export const LINK_PROTOCOL = 'paceline-link/1';

export const MessageKind = {
  /** Worker or scheduler to gateway: number of the request, reply frame. */
  REPLY: 1,
  /** Worker to gateway: number, attempt, started, error. */
  LOST: 2,
  /** Worker to gateway: id of the pull, number of the request. */
  PULL: 3,
  /** Gateway to worker: id of the pull, {@link PullOutcome}, tensors. */
  PULLED: 4,
  /** Scheduler to gateway: a SchedulerMessage. */
  SCHEDULER: 5,
  /** Gateway to scheduler: a GatewayMessage. */
  GATEWAY: 6,
} as const;

export const PullOutcome = { FOUND: 0, GONE: 1, NO_ROOM: 2 } as const;

/** All of the control link: a result must not overtake the routing that it speaks of, nor one routing another. */
export const CONTROL_LANE = Number.MAX_SAFE_INTEGER;

/** Frames of one request stay in order. */
export function laneOf(requestNumber: number): number {
  return requestNumber + 1;
}

/** A link message that this role has no business to send. */
export function unexpected(role: MemberRole, kind: number): Error {
  return new Error(`a ${role} sent a message of the kind ${kind}, which is not for it to send`);
}
