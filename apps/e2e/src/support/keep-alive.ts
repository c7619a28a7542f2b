/**
 * One HTTP connection that is kept alive, with one request in flight. Invariant: every byte that arrives belongs to the
 * answer of the request in flight; a byte too many is an error, never skipped.
 */
import { connect, type Socket } from 'node:net';
import { AnswerReader, type HttpAnswer } from './http-answers.js';

/** The connection ended before the answer was there. */
export class ConnectionLostError extends Error {
  constructor(
    /** Bytes of the answer that had come. */
    readonly answerBytes: number,
    /** Whether the request was written on an open connection; false = the connection was refused or closed before. */
    readonly sent: boolean,
    /** Whether nothing had ever been answered on that connection. */
    readonly isFirst: boolean,
  ) {
    super(`the connection ended ${sent ? `after ${answerBytes} bytes of the answer` : 'before the request was sent'}`);
  }
}

export class KeepAliveConnection {
  #socket: Socket | undefined;
  #reader = new AnswerReader();
  #waiting: { resolve(answer: HttpAnswer): void; reject(error: Error): void } | undefined;
  #stray: Error | undefined;
  /** Something was answered on the connection that there is. */
  #answered = false;

  constructor(private readonly port: number) {}

  /** Whether there is a connection now. */
  get isOpen(): boolean {
    return this.#socket !== undefined;
  }

  /** Opens a connection where there is none. @throws ConnectionLostError; Error for bytes that are no answer. */
  async request(bytes: Buffer): Promise<HttpAnswer> {
    if (this.#stray) throw this.#stray;
    const socket = (this.#socket ??= await this.#open());
    return new Promise<HttpAnswer>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      socket.write(bytes);
    });
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  async #open(): Promise<Socket> {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    this.#reader = new AnswerReader();
    this.#answered = false;
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', () => reject(new ConnectionLostError(0, false, true)));
    });
    socket.on('error', () => undefined); // 'close' follows
    socket.on('data', (chunk) => this.#onData(chunk));
    socket.on('close', () => {
      if (this.#socket === socket) this.#socket = undefined;
      this.#settle()?.reject(new ConnectionLostError(this.#reader.pendingBytes, true, !this.#answered));
    });
    return socket;
  }

  #onData(chunk: Buffer): void {
    try {
      const [answer, ...more] = this.#reader.push(chunk);
      if (answer === undefined) return;
      this.#answered = true;
      const waiting = this.#settle();
      if (waiting === undefined || more.length > 0) throw new Error(`an answer nobody asked for: HTTP ${(more[0] ?? answer).status}`);
      if (answer.headers.get('connection') === 'close') this.close();
      waiting.resolve(answer);
    } catch (error) {
      this.#stray = error as Error;
      this.#settle()?.reject(this.#stray);
      this.close();
    }
  }

  #settle(): { resolve(answer: HttpAnswer): void; reject(error: Error): void } | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }
}
