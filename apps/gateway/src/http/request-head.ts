/**
 * Recognises the one kind of HTTP request that the data plane serves by itself: an inference request in canonical HTTP/1.1
 * form. Invariant: whatever is read differently by another HTTP parser is not recognised, so that node:http judges it.
 */

import { TIMEOUT_HEADER } from '../infer/time-limit.js';

/** A recognised request, up to its body. */
export interface InferHead {
  readonly model: string;
  /** "" = not in the path. */
  readonly version: string;
  readonly contentLength: number;
  /** The client asked to close the connection after the reply. */
  readonly close: boolean;
  readonly inferenceHeaderLength: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly acceptEncoding: string | undefined;
  /** W3C trace context. */
  readonly traceparent: string | undefined;
  readonly requestTimeout: string | undefined;
  /** The headers that decide about access, by lower-case name. */
  readonly credentials: Readonly<Record<string, string>>;
}

/** How a recognised request begins; shorter input that agrees so far may become one. */
export const INFER_PREFIX = Buffer.from('POST /v2/models/', 'latin1');

const REQUEST_LINE = /^POST \/v2\/models\/([\w.-]+)(?:\/versions\/(\d+))?\/infer HTTP\/1\.1$/;
/** A field name, no space before the colon, a value of visible ASCII, spaces and tabs. */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e]*)$/;
const DIGITS = /^\d{1,15}$/;

/** Fields that decide framing or the reply; a second one of these is not canonical. */
const SINGLE = new Set([
  'host',
  'content-length',
  'connection',
  'inference-header-content-length',
  'content-encoding',
  'accept-encoding',
  'traceparent',
  TIMEOUT_HEADER,
]);
/** Fields whose presence means that the request wants more than this parser does. */
const FOREIGN = new Set(['transfer-encoding', 'expect', 'upgrade', 'te', 'trailer', 'http2-settings', 'origin']);
const NONE: ReadonlySet<string> = new Set();

/**
 * @param text the head without the empty line that ends it, decoded as latin1
 * @param credentialNames lower-case names of the headers that decide about access
 * @returns undefined for anything that is not plainly an inference request
 */
export function parseInferHead(text: string, credentialNames: ReadonlySet<string> = NONE): InferHead | undefined {
  const lines = text.split('\r\n');
  const line = REQUEST_LINE.exec(lines[0] as string);
  if (line === null || line[1] === '.' || line[1] === '..') return undefined;
  const fields: Record<string, string> = {};
  const credentials: Record<string, string> = Object.create(null) as Record<string, string>;
  for (let i = 1; i < lines.length; i++) {
    const field = FIELD.exec(lines[i] as string);
    if (field === null) return undefined;
    const name = (field[1] as string).toLowerCase();
    if (FOREIGN.has(name)) return undefined;
    if (credentialNames.has(name)) {
      if (credentials[name] !== undefined) return undefined;
      credentials[name] = (field[2] as string).trimEnd();
    }
    if (!SINGLE.has(name)) continue;
    if (fields[name] !== undefined) return undefined;
    fields[name] = (field[2] as string).trimEnd();
  }
  const length = fields['content-length'];
  if (fields.host === undefined || length === undefined || !DIGITS.test(length)) return undefined;
  const connection = fields.connection?.toLowerCase() ?? 'keep-alive';
  if (connection !== 'keep-alive' && connection !== 'close') return undefined;
  return {
    model: line[1] as string,
    version: line[2] ?? '',
    contentLength: Number(length),
    close: connection === 'close',
    inferenceHeaderLength: fields['inference-header-content-length'],
    contentEncoding: fields['content-encoding'],
    acceptEncoding: fields['accept-encoding'],
    traceparent: fields['traceparent'],
    requestTimeout: fields[TIMEOUT_HEADER],
    credentials,
  };
}

/** Whether `bytes`, which end inside a head, may still become an inference request. */
export function mayBecomeInfer(bytes: Buffer): boolean {
  const n = Math.min(bytes.length, INFER_PREFIX.length);
  return bytes.compare(INFER_PREFIX, 0, n, 0, n) === 0;
}

/** Header lines of a head, without its request line. */
export function headerCount(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\r\n'); at >= 0; at = text.indexOf('\r\n', at + 2)) count += 1;
  return count;
}
