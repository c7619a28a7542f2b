/** A TCP proxy on loopback that does to connections what networks do: cuts them, or swallows every byte in silence. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { HostPort } from '../address.js';

export class FaultyProxy {
  readonly #sockets = new Set<Socket>();
  #frozen = false;
  #refusing = false;
  /** Connections that were taken. */
  accepted = 0;

  private constructor(
    private readonly server: Server,
    private readonly target: HostPort,
  ) {
    server.on('connection', (socket: Socket) => this.#join(socket));
  }

  static async to(target: HostPort): Promise<FaultyProxy> {
    const server = createServer({ allowHalfOpen: false });
    const proxy = new FaultyProxy(server, target);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Resets every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
    this.#sockets.clear();
  }

  /** Connections stay open, and nothing passes in either direction; new ones are taken and lead nowhere. */
  freeze(): void {
    this.#frozen = true;
    for (const socket of this.#sockets) socket.pause();
  }

  thaw(): void {
    this.#frozen = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** New connections are reset. */
  refuse(refusing: boolean): void {
    this.#refusing = refusing;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  #join(near: Socket): void {
    if (this.#refusing) {
      near.on('error', () => undefined).resetAndDestroy();
      return;
    }
    this.accepted++;
    const far = connect({ host: this.target.host, port: this.target.port });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => undefined);
      from.on('data', (bytes: Buffer) => {
        if (!to.destroyed && !to.write(bytes)) from.pause();
      });
      to.on('drain', () => {
        if (!this.#frozen) from.resume();
      });
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#frozen) from.pause();
    }
  }
}
