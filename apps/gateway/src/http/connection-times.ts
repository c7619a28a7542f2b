/**
 * When a connection last moved, for the judgement of its timeouts, in ticks of the data plane, which cost nothing to read.
 * Replies that the client does not take are timed by the socket itself instead, because it sees progress inside one write.
 */
import type { Socket } from 'node:net';
import type { ConnectionHost } from './connection-host.js';
import { judgeTimeout, type ConnectionState, type TimeoutVerdict } from './connection-timeouts.js';

export class ConnectionTimes {
  /** Of the last byte read or written. */
  #activeTick: number;
  /** Of the first byte of the request being read. */
  #requestTick: number;
  /** Whether the socket times an unsent reply. */
  #watching = false;

  constructor(
    private readonly socket: Socket,
    private readonly host: ConnectionHost,
  ) {
    this.#activeTick = this.#requestTick = host.tick;
  }

  /** Something was read or written. */
  moved(): void {
    this.#activeTick = this.host.tick;
  }

  /** What is read from now on belongs to another request. */
  requestBegins(): void {
    this.#requestTick = this.host.tick;
  }

  /** Once a second. */
  judge(state: Omit<ConnectionState, 'quietS' | 'requestS'>): TimeoutVerdict {
    const { limits, tick } = this.host;
    if (this.#watchUnsent()) return { kind: 'wait' };
    return judgeTimeout({ ...state, quietS: tick - this.#activeTick, requestS: tick - this.#requestTick }, limits);
  }

  /** The socket goes to another owner. */
  letGo(): void {
    this.socket.setTimeout(0, this.#onStalled);
  }

  #watchUnsent(): boolean {
    const unsent = this.socket.writableLength > 0;
    if (unsent !== this.#watching) {
      this.#watching = unsent;
      this.socket.setTimeout(unsent ? this.host.limits.stallTimeoutS * 1000 : 0, this.#onStalled);
      this.moved();
    }
    return unsent;
  }

  readonly #onStalled = (): void => {
    this.socket.destroy();
  };
}
