/**
 * Ports for processes that must keep theirs over restarts. They are taken from below the range that the system gives to
 * outgoing connections: in that range another process could get hold of a port while its owner is down.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';

const FIRST = 20_000;
const LAST = 32_000;

/** Whether nobody listens on that port, on any address. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port);
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

export class FreePorts {
  readonly #taken = new Set<number>();
  #next = FIRST + Math.floor(Math.random() * (LAST - FIRST));

  /** Keeps a port from being given out. */
  reserve(port: number): void {
    this.#taken.add(port);
  }

  /** @throws Error when none is left */
  async take(): Promise<number> {
    for (let attempt = FIRST; attempt < LAST; attempt++) {
      const port = this.#next;
      this.#next = port + 1 < LAST ? port + 1 : FIRST;
      if (this.#taken.has(port) || !(await isFree(port))) continue;
      this.#taken.add(port);
      return port;
    }
    throw new Error(`no TCP port between ${FIRST} and ${LAST} is free`);
  }
}
