/**
 * The worker's end: replies to each gateway, and pulls of the tensors that stayed with it. A pull is asked for once,
 * however many want it at the same time, and always ends: with the tensors, or with an error that names what failed.
 */
import type { Timer } from '@paceline/clock';
import { ServingError, type Member, type ReplyFrame, type RequestRef } from '@paceline/protocol';
import { readTensors, WireReader, WireWriter, writeServingError } from '@paceline/protocol/wire';
import type { Tensor } from '@paceline/tensor';
import { GatewayDialler, type GatewayListener } from './gateway-dialler.js';
import { laneOf, MessageKind, PullOutcome, unexpected } from './kinds.js';
import type { LinkSetup } from './link-setup.js';
import type { WorkerLinks } from './ports.js';

export interface WorkerLinkSetup extends LinkSetup {
  /** Default 10 000. */
  readonly pullLimitMs?: number;
}

export function createWorkerLinks(setup: WorkerLinkSetup): WorkerLinks {
  return new TcpWorkerLinks(setup);
}

const PULL_LIMIT_MS = 10_000;
/** A gateway that cannot be reached for this long does not come back for one request. */
const REACH_LIMIT_MS = 2000;

interface Pull {
  readonly ref: RequestRef;
  readonly key: string;
  readonly resolve: (tensors: readonly Tensor[]) => void;
  readonly reject: (error: ServingError) => void;
  limit: Timer;
}

class TcpWorkerLinks implements WorkerLinks, GatewayListener {
  readonly #dialler: GatewayDialler;
  readonly #pulls = new Map<number, Pull>();
  readonly #running = new Map<string, Promise<readonly Tensor[]>>();
  #nextPull = 1;

  constructor(private readonly setup: WorkerLinkSetup) {
    this.#dialler = new GatewayDialler(setup, 'worker', this);
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

  lost(ref: RequestRef, attempt: number, started: boolean, error: ServingError): void {
    const writer = new WireWriter();
    writer.varint(ref.number);
    writer.varint(attempt);
    writer.u8(started ? 1 : 0);
    writeServingError(writer, error);
    if (this.#dialler.send(ref.gateway, MessageKind.LOST, writer, { lane: laneOf(ref.number) })) return;
    this.setup.onProblem?.(`word of a lost request for gateway ${ref.gateway} dropped: too much waits for it`);
  }

  pull(ref: RequestRef): Promise<readonly Tensor[]> {
    const key = `${ref.gateway}/${ref.number}`;
    const running = this.#running.get(key);
    if (running) return running;
    const { promise, resolve, reject } = Promise.withResolvers<readonly Tensor[]>();
    this.#running.set(key, promise);
    this.#ask({ ref, key, resolve, reject });
    return promise;
  }

  flush(limitMs: number): Promise<void> {
    return this.#dialler.flush(limitMs);
  }

  async close(): Promise<void> {
    for (const id of [...this.#pulls.keys()]) this.#end(id)?.reject(failed('the worker is closing'));
    await this.#dialler.close();
  }

  onGatewayUp(): void {
    // Everything that was kept for it is on its way already.
  }

  onGatewayDown(gateway: string, reason: string): void {
    for (const [id, { ref }] of this.#pulls) {
      if (ref.gateway === gateway) this.#end(id)?.reject(failed(`gateway ${gateway} cannot be reached: ${reason}`));
    }
  }

  onGatewayMessage(_gateway: string, kind: number, body: Buffer): void {
    if (kind !== MessageKind.PULLED) throw unexpected('gateway', kind);
    const reader = new WireReader(body);
    const pull = this.#end(reader.varint('pull'));
    // Its limit was over before.
    if (!pull) return;
    const outcome = reader.u8('outcome of a pull');
    if (outcome === PullOutcome.GONE) {
      pull.reject(new ServingError('CANCELLED', 'the gateway does not have the request any more', { reason: 'request_gone' }));
    } else if (outcome === PullOutcome.NO_ROOM) {
      pull.reject(failed('the input tensors are larger than what the links may hold'));
    } else {
      this.#resolve(pull, reader);
    }
  }

  #resolve(pull: Pull, reader: WireReader): void {
    try {
      pull.resolve(readTensors(reader));
    } catch (error) {
      pull.reject(failed('the gateway sent tensors that cannot be read', error));
      throw error;
    }
  }

  #ask(pull: Omit<Pull, 'limit'>): void {
    const id = this.#nextPull++;
    const { gateway, number } = pull.ref;
    const limitMs = this.setup.pullLimitMs ?? PULL_LIMIT_MS;
    const reachMs = Math.min(REACH_LIMIT_MS, limitMs);
    const asked: Pull = { ...pull, limit: this.#timer(reachMs, () => this.#look(id, limitMs - reachMs)) };
    this.#pulls.set(id, asked);
    const writer = new WireWriter();
    writer.varint(id);
    writer.varint(number);
    if (this.#dialler.send(gateway, MessageKind.PULL, writer)) return;
    this.#end(id)?.reject(failed(`too much waits for gateway ${gateway}`));
  }

  /** Some time has gone by without an answer. */
  #look(id: number, leftMs: number): void {
    const pull = this.#pulls.get(id);
    if (!pull) return;
    const { gateway } = pull.ref;
    if (!this.#dialler.isUp(gateway)) {
      this.#end(id)?.reject(failed(`gateway ${gateway} cannot be reached`));
    } else if (leftMs > 0) {
      pull.limit = this.#timer(leftMs, () => this.#look(id, 0));
    } else {
      const limitMs = this.setup.pullLimitMs ?? PULL_LIMIT_MS;
      const message = `the input tensors did not come from gateway ${gateway} within ${limitMs} ms`;
      this.#end(id)?.reject(new ServingError('DEADLINE_EXCEEDED', message, { reason: 'pull_timeout' }));
    }
  }

  #end(id: number): Pull | undefined {
    const pull = this.#pulls.get(id);
    if (!pull) return undefined;
    pull.limit.cancel();
    this.#pulls.delete(id);
    this.#running.delete(pull.key);
    return pull;
  }

  #timer(delayMs: number, fn: () => void): Timer {
    return this.setup.clock.setTimer(delayMs * 1000, fn);
  }
}

function failed(message: string, cause?: unknown): ServingError {
  return new ServingError('UNAVAILABLE', message, { reason: 'pull_failed', ...(cause === undefined ? {} : { cause }) });
}
