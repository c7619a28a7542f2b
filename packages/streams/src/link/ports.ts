/**
 * The ports of the connections between processes of a cluster. The gateway listens on its link port; every scheduler and
 * every worker dials every gateway (found by membership) and keeps one connection to it. Between a scheduler and a gateway
 * that is the control link and the way of refusals; between a worker and a gateway it carries replies and pulls of large
 * tensors. What is sent through these ports survives a cut connection as long as both processes live: it is kept until
 * the other side has it, in order, and delivered once.
 */
import type { GatewayMessage, Member, ReplyFrame, RequestRef, SchedulerMessage, ServingError } from '@paceline/protocol';
import type { Tensor } from '@paceline/tensor';
import type { ReplyChannel } from '../ports.js';

/** What a gateway is told. */
export interface GatewayLinkListener {
  onFrame(number: number, frame: ReplyFrame): void;
  /**
   * A worker had the request and will not answer it, and has no scheduler that would deal with that (any more).
   * @param attempt as in the envelope that led to it
   * @param started whether execution had begun
   */
  onLost(number: number, attempt: number, started: boolean, error: ServingError): void;
  /** Input tensors of an unanswered request, for a worker that pulls them; undefined = answered, cancelled or unknown. */
  tensorsOf(number: number): readonly Tensor[] | undefined;
  onSchedulerUp(scheduler: string): void;
  /** Its connection is gone for longer than a reconnect takes, or the process is another one. */
  onSchedulerDown(scheduler: string): void;
  onSchedulerMessage(scheduler: string, message: SchedulerMessage): void;
}

/** Gateway side: the listener of the link port. */
export interface GatewayLinks {
  /** @throws ServingError UNAVAILABLE when the port is taken */
  listen(host: string, port: number): Promise<{ readonly host: string; readonly port: number }>;
  /** Dropped when that scheduler is not connected. */
  tell(scheduler: string, message: GatewayMessage): void;
  /** Ids of those connected now. */
  readonly schedulers: readonly string[];
  readonly workers: readonly string[];
  close(): Promise<void>;
}

export interface SchedulerLinkListener {
  /** A gateway is there (again, as a new process): tell it what it must know. */
  onGatewayUp(gateway: string): void;
  onGatewayDown(gateway: string): void;
  onGatewayMessage(gateway: string, message: GatewayMessage): void;
}

/** Scheduler side. */
export interface SchedulerLinks extends ReplyChannel {
  /** Dials new ones and leaves those that are not named any more. Members of other roles are ignored. */
  setMembers(members: readonly Member[]): void;
  tell(gateway: string, message: SchedulerMessage): void;
  broadcast(message: SchedulerMessage): void;
  /** Ids of those connected now. */
  readonly gateways: readonly string[];
  close(): Promise<void>;
}

/** Worker side. A frame for a gateway that is not known yet waits some seconds for membership to name it. */
export interface WorkerLinks extends ReplyChannel {
  setMembers(members: readonly Member[]): void;
  /** See {@link GatewayLinkListener.onLost}. */
  lost(ref: RequestRef, attempt: number, started: boolean, error: ServingError): void;
  /**
   * Fetches the input tensors of a request that stayed with its gateway.
   * @throws ServingError CANCELLED (reason `request_gone`) when the gateway has it no more, UNAVAILABLE (`pull_failed`)
   * when the gateway cannot be reached, DEADLINE_EXCEEDED (`pull_timeout`)
   */
  pull(ref: RequestRef): Promise<readonly Tensor[]>;
  readonly gateways: readonly string[];
  /** Resolves when every frame sent so far has arrived, or the limit is over. */
  flush(limitMs: number): Promise<void>;
  close(): Promise<void>;
}
