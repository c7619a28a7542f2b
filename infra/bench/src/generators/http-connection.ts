/** One keep-alive connection with at most one request in flight. */
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { ResponseReader } from './response-reader.js';

export class HttpConnection {
  private constructor(private readonly socket: Socket) {}

  /**
   * @param onAnswer called with the status of each answer once its last byte is there.
   * @param onBroken called once if the connection ends before `close()`.
   */
  static async open(port: number, onAnswer: (status: number) => void, onBroken: (error: Error) => void): Promise<HttpConnection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    const reader = new ResponseReader(onAnswer);
    socket.on('data', (chunk) => {
      try {
        reader.push(chunk);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on('error', onBroken);
    socket.on('close', () => {
      onBroken(new Error('the server closed a connection'));
    });
    return new HttpConnection(socket);
  }

  send(request: Buffer): void {
    this.socket.write(request);
  }

  close(): void {
    this.socket.removeAllListeners('close');
    this.socket.removeAllListeners('error');
    this.socket.on('error', () => undefined);
    this.socket.destroy();
  }
}
