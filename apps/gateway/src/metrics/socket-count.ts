/**
 * Counts the open connections of one listening port, for a server whose library does not tell: Node announces each socket
 * that any server of the process accepts.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const ACCEPTED = 'net.server.socket';

export class SocketCount {
  #port: number | undefined;
  #open = 0;

  /** Open now; 0 before {@link watch}. */
  get open(): number {
    return this.#open;
  }

  /** Counts connections of that port from now on. */
  watch(port: number): void {
    this.#port = port;
    subscribe(ACCEPTED, this.#onSocket);
  }

  close(): void {
    unsubscribe(ACCEPTED, this.#onSocket);
  }

  readonly #onSocket = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket };
    if (socket.localPort !== this.#port) return;
    this.#open += 1;
    socket.once('close', () => void (this.#open -= 1));
  };
}
