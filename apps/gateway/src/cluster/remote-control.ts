/**
 * Model control of a gateway: operations go to the placement owner, which answers each once. Invariant: an operation is
 * known by its number until it is answered, and is told again to whoever becomes the owner, which makes it idempotent.
 */
import type { Clock, Timer } from '@paceline/clock';
import { ServingError, type GatewayMessage, type LoadParameter, type ModelControl, type ModelIndexEntry } from '@paceline/protocol';
import type { RemoteCatalog } from './remote-catalog.js';

type ControlMessage = Extract<GatewayMessage, { kind: 'control' }>;

interface Operation {
  readonly message: ControlMessage;
  readonly resolve: () => void;
  readonly reject: (error: ServingError) => void;
  /** Whom it was told, and in which term of office. */
  toldTo: string | undefined;
  toldIn: number;
}

export interface RemoteControlOptions {
  readonly catalog: RemoteCatalog;
  readonly clock: Clock;
  readonly tell: (scheduler: string, message: GatewayMessage) => void;
  /** How long operations wait for an owner while there is none, milliseconds. */
  readonly ownerLimitMs: number;
  readonly onProgress?: (operation: Pick<ControlMessage, 'operation' | 'model'>, text: string) => void;
}

export class RemoteControl implements ModelControl {
  readonly #options: RemoteControlOptions;
  readonly #operations = new Map<number, Operation>();
  #lastId = 0;
  #owner: string | undefined;
  #term = 0;
  #ownerless: Timer | undefined;

  constructor(options: RemoteControlOptions) {
    this.#options = options;
  }

  index(readyOnly: boolean): readonly ModelIndexEntry[] {
    return this.#options.catalog.index(readyOnly);
  }

  load(model: string, parameters: Readonly<Record<string, LoadParameter>>): Promise<void> {
    return this.#ask({ kind: 'control', operation: 'load', model, parameters, unloadDependents: false });
  }

  unload(model: string, { unloadDependents }: { readonly unloadDependents: boolean }): Promise<void> {
    return this.#ask({ kind: 'control', operation: 'unload', model, parameters: {}, unloadDependents });
  }

  /**
   * That scheduler published a routing which holds. What it has not heard yet, it hears now.
   * @param term number of the routing's epoch: in a new term a scheduler has forgotten what it heard before
   */
  onOwner(scheduler: string, term = 0): void {
    this.#owner = scheduler;
    this.#term = term;
    this.#ownerless?.cancel();
    this.#ownerless = undefined;
    for (const operation of this.#operations.values()) this.#tell(operation);
  }

  onSchedulerDown(scheduler: string): void {
    for (const operation of this.#operations.values()) if (operation.toldTo === scheduler) operation.toldTo = undefined;
    if (this.#owner !== scheduler) return;
    this.#owner = undefined;
    if (this.#operations.size > 0) this.#waitForOwner();
  }

  onProgress(id: number, text: string): void {
    const message = this.#operations.get(id)?.message;
    if (message) this.#options.onProgress?.(message, text);
  }

  /** Results of operations that are answered already are dropped. */
  onResult(id: number, error: ServingError | undefined): void {
    const operation = this.#operations.get(id);
    this.#operations.delete(id);
    if (error) operation?.reject(error);
    else operation?.resolve();
  }

  close(): void {
    this.#ownerless?.cancel();
    this.#fail('the gateway is stopping', 'draining');
  }

  #ask(message: Omit<ControlMessage, 'id'>): Promise<void> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId;
      const operation: Operation = { message: { ...message, id }, resolve, reject, toldTo: undefined, toldIn: 0 };
      this.#operations.set(id, operation);
      if (this.#owner === undefined) this.#waitForOwner();
      else this.#tell(operation);
    });
  }

  #tell(operation: Operation): void {
    const owner = this.#owner;
    if (owner === undefined || (operation.toldTo === owner && operation.toldIn === this.#term)) return;
    operation.toldTo = owner;
    operation.toldIn = this.#term;
    this.#options.tell(owner, operation.message);
  }

  #waitForOwner(): void {
    const { clock, ownerLimitMs } = this.#options;
    this.#ownerless ??= clock.setTimer(ownerLimitMs * 1000, () => {
      this.#ownerless = undefined;
      this.#fail(`no scheduler has taken over the placement of models within ${ownerLimitMs} ms`, 'no_placement_owner');
    });
  }

  #fail(text: string, reason: string): void {
    const operations = [...this.#operations.values()];
    this.#operations.clear();
    for (const { message, reject } of operations)
      reject(new ServingError('UNAVAILABLE', `failed to ${message.operation} '${message.model}': ${text}`, { reason }));
  }
}
