/** For tests: a raw HTTP/1.1 client that sends exactly the bytes it is given and reads whole responses. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { unzipSync } from 'node:zlib';

export interface RawResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface DecodedResponse {
  readonly status: number;
  /** The JSON part. */
  readonly text: string;
  readonly binaryBase64: string | undefined;
  readonly contentEncoding: string | undefined;
}

export class RawClient {
  #received: Buffer = Buffer.alloc(0);
  #closed = false;

  private constructor(readonly socket: Socket) {
    socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#closed = true;
    });
  }

  static async connect(port: number): Promise<RawClient> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    await once(socket, 'connect');
    return new RawClient(socket);
  }

  /** Over a socket that is connected already, e.g. with TLS. */
  static over(socket: Socket): RawClient {
    return new RawClient(socket);
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** The next response, interim ones included. @throws when the connection closes before it is complete */
  async response(): Promise<RawResponse> {
    for (;;) {
      const response = this.#take();
      if (response) return response;
      if (this.#closed) throw new Error(`connection closed after ${JSON.stringify(this.#received.toString('latin1'))}`);
      await Promise.race([once(this.socket, 'data'), once(this.socket, 'close')]);
    }
  }

  /** Resolves when the server has closed the connection; returns what was received and not taken. */
  async closed(): Promise<string> {
    if (!this.#closed) await once(this.socket, 'close');
    return this.#received.toString('latin1');
  }

  destroy(): void {
    this.socket.destroy();
  }

  #take(): RawResponse | undefined {
    const end = this.#received.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const [line = '', ...fields] = this.#received.toString('latin1', 0, end).split('\r\n');
    const headers = Object.fromEntries(fields.map((f) => [f.slice(0, f.indexOf(':')).toLowerCase(), f.slice(f.indexOf(':') + 1).trim()]));
    const start = end + 4;
    const stop = start + Number(headers['content-length'] ?? 0);
    if (this.#received.length < stop) return undefined;
    const body = this.#received.subarray(start, stop);
    this.#received = this.#received.subarray(stop);
    return { status: Number(line.split(' ')[1]), headers, body };
  }
}

export function decodeResponse({ status, headers, body }: RawResponse): DecodedResponse {
  const contentEncoding = headers['content-encoding'];
  const plain = contentEncoding === undefined ? body : unzipSync(body);
  const length = headers['inference-header-content-length'];
  if (length === undefined) return { status, text: plain.toString(), binaryBase64: undefined, contentEncoding };
  return {
    status,
    text: plain.toString('utf8', 0, Number(length)),
    binaryBase64: plain.toString('base64', Number(length)),
    contentEncoding,
  };
}

/** A whole request as bytes. */
export function post(path: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const lines = Object.entries({ Host: 'test', 'Content-Length': String(bytes.length), ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]);
}
