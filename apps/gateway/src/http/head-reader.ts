/**
 * Finds the head of the next request in what a connection has read, and says whether it is an inference request at all.
 * Remembers the last head, because clients repeat themselves. Invariant: a head is measured before it is parsed.
 */
import { tooManyHeadersText, type DataPlaneLimits } from './data-plane-limits.js';
import { headerCount, mayBecomeInfer, parseInferHead, type InferHead } from './request-head.js';

/**
 * - `head`: `length` bytes, the empty line included; the body follows
 * - `more`: the head is not complete
 * - `foreign`: not plainly an inference request
 * - `refuse`: over a limit, HTTP status 431
 */
export type HeadReading =
  | { readonly kind: 'head'; readonly head: InferHead; readonly length: number }
  | { readonly kind: 'more' }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'refuse'; readonly reason: string; readonly text: string };

const HEAD_END = Buffer.from('\r\n\r\n', 'latin1');
const MORE: HeadReading = { kind: 'more' };
const FOREIGN: HeadReading = { kind: 'foreign' };

export class HeadReader {
  #text = '';
  #head: InferHead | undefined;

  constructor(
    private readonly limits: DataPlaneLimits,
    /** Lower-case. */
    private readonly credentialNames: ReadonlySet<string>,
  ) {}

  /** @param bytes from the first one of a request on */
  read(bytes: Buffer): HeadReading {
    const { maxHeaderBytes } = this.limits;
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) {
      if (!mayBecomeInfer(bytes)) return FOREIGN;
      return bytes.length > maxHeaderBytes ? tooLarge(maxHeaderBytes) : MORE;
    }
    if (end > maxHeaderBytes && mayBecomeInfer(bytes)) return tooLarge(maxHeaderBytes);
    const text = bytes.toString('latin1', 0, end);
    if (text !== this.#text) {
      const { maxHeaderCount } = this.limits;
      const count = headerCount(text);
      if (count > maxHeaderCount && mayBecomeInfer(bytes)) {
        return { kind: 'refuse', reason: 'too_many_headers', text: tooManyHeadersText(count, maxHeaderCount) };
      }
      this.#head = parseInferHead(text, this.credentialNames);
      this.#text = text;
    }
    return this.#head === undefined ? FOREIGN : { kind: 'head', head: this.#head, length: end + HEAD_END.length };
  }
}

function tooLarge(maxHeaderBytes: number): HeadReading {
  const text = `request headers exceed the limit of ${maxHeaderBytes} bytes. Use --http-max-header-size to increase the limit.`;
  return { kind: 'refuse', reason: 'headers_too_large', text };
}
