/**
 * Reads HTTP/1.1 answers off a socket byte by byte, as strictly as a client that trusts nobody: whatever is not a complete,
 * well-formed answer is an error, because a lenient reader would hide an answer too many.
 */
export interface HttpAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

const HEAD_END = '\r\n\r\n';
const STATUS_LINE = /^HTTP\/1\.[01] ([1-5]\d\d)(?: .*)?$/;
const CHUNK_HEAD = /^([0-9a-f]+)\r\n/i;

/** A `Transfer-Encoding: chunked` body at the start of `bytes`; undefined while it is incomplete. */
function chunkedBody(bytes: Buffer): { readonly body: Buffer; readonly length: number } | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const head = CHUNK_HEAD.exec(bytes.toString('latin1', at, at + 20));
    if (head === null) {
      if (bytes.length - at > 18) throw new Error('an answer with a malformed chunk');
      return undefined;
    }
    const size = Number.parseInt(head[1]!, 16);
    const start = at + head[0].length;
    if (bytes.length < start + size + 2) return undefined;
    if (bytes.toString('latin1', start + size, start + size + 2) !== '\r\n') throw new Error('an answer with a chunk that does not end');
    if (size === 0) return { body: Buffer.concat(chunks), length: start + 2 };
    chunks.push(bytes.subarray(start, start + size));
    at = start + size + 2;
  }
}

function parseHead(text: string): { readonly status: number; readonly headers: Map<string, string> } {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const status = STATUS_LINE.exec(statusLine)?.[1];
  if (status === undefined) throw new Error(`an answer that begins with ${JSON.stringify(statusLine.slice(0, 80))}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon < 1) throw new Error(`an answer with the header line ${JSON.stringify(line.slice(0, 80))}`);
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return { status: Number(status), headers };
}

export class AnswerReader {
  #rest: Buffer = Buffer.alloc(0);

  /** @param bodyless the answers are to HEAD requests: their heads announce a body that does not follow */
  constructor(private readonly bodyless = false) {}

  /** Bytes that belong to no complete answer yet. */
  get pendingBytes(): number {
    return this.#rest.length;
  }

  /** @returns the answers that `chunk` completes; interim ones (100-199) are left out. @throws Error for what is no answer. */
  push(chunk: Buffer): HttpAnswer[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const answers: HttpAnswer[] = [];
    for (let answer = this.#take(false); answer !== undefined; answer = this.#take(false)) {
      if (answer.status >= 200) answers.push(answer);
    }
    return answers;
  }

  /** The connection has ended: an answer without a length ends here. @throws Error when one was cut off. */
  end(): HttpAnswer[] {
    const last = this.#take(true);
    if (this.#rest.length > 0) throw new Error(`the connection ended inside an answer, after ${this.#rest.length} bytes of it`);
    return last === undefined ? [] : [last];
  }

  #take(ended: boolean): HttpAnswer | undefined {
    const headEnd = this.#rest.indexOf(HEAD_END);
    if (headEnd < 0) return undefined;
    const { status, headers } = parseHead(this.#rest.toString('latin1', 0, headEnd));
    const rest = this.#rest.subarray(headEnd + HEAD_END.length);
    const taken = this.bodyless ? { body: Buffer.alloc(0), length: 0 } : bodyOf(status, headers, rest, ended);
    if (taken === undefined) return undefined;
    this.#rest = rest.subarray(taken.length);
    return { status, headers, body: taken.body };
  }
}

function bodyOf(
  status: number,
  headers: ReadonlyMap<string, string>,
  rest: Buffer,
  ended: boolean,
): { readonly body: Buffer; readonly length: number } | undefined {
  if (status < 200 || status === 204 || status === 304) return { body: Buffer.alloc(0), length: 0 };
  const announced = headers.get('content-length');
  if (announced !== undefined) {
    const length = Number(announced);
    return rest.length < length ? undefined : { body: rest.subarray(0, length), length };
  }
  if (headers.get('transfer-encoding') === 'chunked') return chunkedBody(rest);
  return ended ? { body: rest, length: rest.length } : undefined;
}
