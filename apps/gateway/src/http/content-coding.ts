/**
 * gzip and deflate of whole bodies, both ways. Small bodies are done at once, because a trip to the thread pool costs more
 * than they do. Invariant: inflating never yields more than the input limit.
 */
import { promisify } from 'node:util';
import { deflate, deflateSync, gzip, gzipSync, inflateRaw, inflateRawSync, unzip, unzipSync } from 'node:zlib';
import { ServingError } from '@paceline/protocol';

export type ContentCoding = 'identity' | 'gzip' | 'deflate';

/** Up to this many bytes are coded on the spot. */
const INLINE_BYTES = 32 * 1024;
/** Where more comes out, the thread pool does it: a few kilobytes can become all that a body may be. */
const INLINE_INFLATED_BYTES = 256 * 1024;
/** In order of preference where the client has none. */
const CODINGS = ['gzip', 'deflate', 'identity'] as const;

/** The coding of a reply for an Accept-Encoding header; q-values count, `*` means no compression is asked for. */
export function negotiate(accept: string): ContentCoding {
  const weights = new Map<string, number>();
  for (const item of accept.split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
    let weight = 1;
    for (const parameter of parameters)
      if (parameter.startsWith('q=')) weight = /^q=[01](\.\d{0,3})?$/.test(parameter) ? Number(parameter.slice(2)) : 0;
    weights.set(name, weight);
  }
  let best: ContentCoding = 'identity';
  let bestWeight = weights.get('identity') ?? 0;
  for (const coding of CODINGS) {
    const weight = weights.get(coding) ?? 0;
    if (weight > bestWeight || (weight > 0 && weight === bestWeight && best === 'identity')) {
      best = coding;
      bestWeight = weight;
    }
  }
  return best;
}

export class UnsupportedCodingError extends ServingError {
  constructor() {
    super('UNIMPLEMENTED', 'Unsupported compression type', { reason: 'content_encoding_unsupported', httpStatus: 415 });
  }
}

/** How large a body may become. */
interface Bound {
  readonly maxBytes: number;
  /** The factor that sets it, where it is not the size limit that does. */
  readonly ratio: number | undefined;
}

/** Results up to this size are nobody's bomb, whatever their ratio. */
const RATIO_ABOVE_BYTES = 64 * 1024;

function boundOf(body: Buffer, maxBytes: number, maxRatio: number): Bound {
  const byRatio = Math.max(RATIO_ABOVE_BYTES, maxRatio * body.length);
  return maxRatio > 0 && byRatio < maxBytes ? { maxBytes: byRatio, ratio: maxRatio } : { maxBytes, ratio: undefined };
}

function inflateError(thrown: unknown, body: Buffer, { maxBytes, ratio }: Bound): ServingError {
  const error = thrown as NodeJS.ErrnoException;
  if (error.code === 'ERR_BUFFER_TOO_LARGE' && ratio !== undefined) {
    return new ServingError(
      'INVALID_ARGUMENT',
      `decompressed request exceeds ${ratio} times its ${body.length} compressed bytes. Use --http-max-decompression-ratio to increase the limit.`,
      { reason: 'decompression_ratio', httpStatus: 413 },
    );
  }
  if (error.code === 'ERR_BUFFER_TOO_LARGE') {
    return new ServingError(
      'INVALID_ARGUMENT',
      `decompressed request exceeds the maximum allowed input size of ${maxBytes} bytes. Use --http-max-input-size to increase the limit.`,
      {
        reason: 'body_too_large',
        httpStatus: 413,
      },
    );
  }
  return new ServingError('INVALID_ARGUMENT', `failed to decompress the request body: ${error.message}`, {
    reason: 'content_encoding_malformed',
    cause: error,
  });
}

/** Both names stand for either format, and deflate also for its raw form: clients disagree. */
function mayBeRaw(thrown: unknown, coding: string): boolean {
  return coding === 'deflate' && (thrown as NodeJS.ErrnoException).code === 'Z_DATA_ERROR';
}

function inflateNow(body: Buffer, coding: string, maxOutputLength: number): Buffer {
  try {
    return unzipSync(body, { maxOutputLength });
  } catch (error) {
    if (mayBeRaw(error, coding)) return inflateRawSync(body, { maxOutputLength });
    throw error;
  }
}

const unzipInPool = promisify<Buffer, { maxOutputLength: number }, Buffer>(unzip);
const inflateRawInPool = promisify<Buffer, { maxOutputLength: number }, Buffer>(inflateRaw);

async function inflateInPool(body: Buffer, coding: string, bound: Bound): Promise<Buffer> {
  const maxOutputLength = bound.maxBytes;
  try {
    return await unzipInPool(body, { maxOutputLength }).catch((error: unknown) => {
      if (mayBeRaw(error, coding)) return inflateRawInPool(body, { maxOutputLength });
      throw error;
    });
  } catch (error) {
    throw inflateError(error, body, bound);
  }
}

/**
 * @param maxRatio most that the body may grow by, where the result is above 64 KiB; 0 = any factor
 * @returns the body itself for "identity", else a new buffer, or a promise of one for a large body or result
 * @throws ServingError for another coding, malformed data (INVALID_ARGUMENT), or more than `maxBytes` (413)
 */
export function inflateBody(body: Buffer, contentEncoding: string, maxBytes: number, maxRatio = 0): Buffer | Promise<Buffer> {
  const coding = contentEncoding.trim().toLowerCase();
  if (coding === 'identity') return body;
  if (coding !== 'gzip' && coding !== 'deflate') throw new UnsupportedCodingError();
  if (body.length === 0) throw new ServingError('INVALID_ARGUMENT', 'nothing to be decompressed', { reason: 'content_encoding_malformed' });
  const bound = boundOf(body, maxBytes, maxRatio);
  if (body.length > INLINE_BYTES) return inflateInPool(body, coding, bound);
  try {
    return inflateNow(body, coding, Math.min(bound.maxBytes, INLINE_INFLATED_BYTES));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return inflateInPool(body, coding, bound);
    throw inflateError(error, body, bound);
  }
}

/** @param done called at once for a small body */
export function compressBody(body: Buffer, coding: 'gzip' | 'deflate', done: (error: Error | null, result: Buffer) => void): void {
  if (body.length > INLINE_BYTES) (coding === 'gzip' ? gzip : deflate)(body, done);
  else done(null, (coding === 'gzip' ? gzipSync : deflateSync)(body));
}
