/**
 * Ends keep-alive connections of a node:http server that drains: the last response of each says `Connection: close`. A
 * response is taken for the last until a further request comes on its connection; what was pipelined behind it is
 * answered, too. Invariant: nothing is changed about a server that does not drain.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export class FallbackDrain {
  /** The response to the newest request of each connection. */
  readonly #newest = new WeakMap<Socket, ServerResponse>();
  #draining = false;

  constructor(server: Server) {
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => this.#onRequest(request.socket, response));
  }

  begin(): void {
    this.#draining = true;
  }

  #onRequest(socket: Socket, response: ServerResponse): void {
    if (!this.#draining) return;
    const before = this.#newest.get(socket);
    if (before !== undefined && !before.headersSent) before.shouldKeepAlive = true;
    this.#newest.set(socket, response);
    response.shouldKeepAlive = false;
  }
}
