/** Inflating in both places gives the same: small bodies at once, large ones and small ones that grow in the thread pool. */
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { inflateBody } from './content-coding.js';

const MAX_BYTES = 4_000_000;
const small = Buffer.from('{"inputs":[]}');
/** Does not shrink below what is inflated at once. */
const large = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7919 * (i % 251)) & 0xff));
/** A few kilobytes when packed. */
const growing = Buffer.alloc(2_000_000, ' ');

const FORMS = [
  ['gzip', 'gzip', gzipSync],
  ['deflate', 'deflate', deflateSync],
  ['raw deflate', 'deflate', deflateRawSync],
] as const;

describe('inflateBody', () => {
  it.each(FORMS)('gives small, large and growing bodies in %s back', async (_, coding, pack) => {
    expect(inflateBody(pack(small), coding, MAX_BYTES)).toEqual(small);
    for (const plain of [large, growing]) {
      const inflated = inflateBody(pack(plain), coding, MAX_BYTES);
      expect(inflated).toBeInstanceOf(Promise);
      expect(plain.equals(await inflated)).toBe(true);
    }
  });

  it.each(FORMS)('refuses more than the limit in %s, whatever the packed size', async (_, coding, pack) => {
    for (const plain of [large, growing]) {
      const inflated = async (): Promise<Buffer> => inflateBody(pack(plain), coding, 50_000);
      await expect(inflated()).rejects.toMatchObject({ httpStatus: 413, reason: 'body_too_large' });
    }
  });

  it('refuses what cannot be unpacked, small and large', async () => {
    for (const noise of [Buffer.from('no gzip at all'), large]) {
      const inflated = async (): Promise<Buffer> => inflateBody(noise, 'gzip', MAX_BYTES);
      await expect(inflated()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'content_encoding_malformed' });
    }
  });
});
