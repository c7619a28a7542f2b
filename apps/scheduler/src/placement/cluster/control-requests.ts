/**
 * Model control asked for by gateways: carries each request out once, tells its progress and one result. Invariants: a
 * request that is sent again gets the same result and is not carried out again; its result follows the routing that it
 * led to, so that whoever sees the result sees the model.
 */
import { toServingError, type GatewayMessage, type SchedulerMessage, type ServingError } from '@paceline/protocol';

export type ControlMessage = GatewayMessage & { readonly kind: 'control' };

export interface ControlPorts {
  /** Carries it out and resolves when every gateway goes by it. @throws ServingError */
  perform(request: ControlMessage): Promise<void>;
  tell(gateway: string, message: SchedulerMessage): void;
}

/** Results that are remembered per gateway, for requests that are sent again. */
const REMEMBERED = 1000;

interface Request {
  readonly message: ControlMessage;
  done: { readonly error: ServingError | undefined } | undefined;
}

export class ControlRequests {
  /** By gateway and id, oldest first. */
  readonly #requests = new Map<string, Map<number, Request>>();
  #held: (() => void)[] | undefined = [];
  #closed = false;

  constructor(private readonly ports: ControlPorts) {}

  /** Requests that came before this are begun now. */
  open(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const begin of held) begin();
  }

  /** No result is told any more: the gateways ask the next owner. */
  close(): void {
    this.#closed = true;
    this.#requests.clear();
  }

  onControl(gateway: string, message: ControlMessage): void {
    if (this.#closed) return;
    const ofGateway = this.#of(gateway);
    const known = ofGateway.get(message.id);
    if (known !== undefined) {
      if (known.done) this.#tellResult(gateway, message.id, known.done.error);
      return;
    }
    const request: Request = { message, done: undefined };
    ofGateway.set(message.id, request);
    const begin = (): void => void this.#perform(gateway, request);
    if (this.#held === undefined) return begin();
    this.ports.tell(gateway, { kind: 'control-progress', id: message.id, text: 'waits until the models of the start-up are loaded' });
    this.#held.push(begin);
  }

  onProgress(model: string, text: string): void {
    for (const [gateway, requests] of this.#requests) {
      for (const [id, { message, done }] of requests) {
        if (!done && message.model === model) this.ports.tell(gateway, { kind: 'control-progress', id, text });
      }
    }
  }

  /** It will not ask again, as another process may have its place. */
  onGatewayDown(gateway: string): void {
    this.#requests.delete(gateway);
  }

  async #perform(gateway: string, request: Request): Promise<void> {
    const { message } = request;
    const error = await this.ports.perform(message).then(() => undefined, toServingError);
    if (this.#closed) return;
    request.done = { error };
    this.#forgetOldest(gateway);
    this.#tellResult(gateway, message.id, error);
  }

  #tellResult(gateway: string, id: number, error: ServingError | undefined): void {
    this.ports.tell(gateway, { kind: 'control-result', id, error });
  }

  #of(gateway: string): Map<number, Request> {
    let requests = this.#requests.get(gateway);
    if (requests === undefined) this.#requests.set(gateway, (requests = new Map<number, Request>()));
    return requests;
  }

  #forgetOldest(gateway: string): void {
    const requests = this.#of(gateway);
    for (const [id, { done }] of requests) {
      if (requests.size <= REMEMBERED) return;
      if (done) requests.delete(id);
    }
  }
}
