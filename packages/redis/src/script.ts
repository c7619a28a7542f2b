/**
 * Lua that runs inside Redis, sent by its digest and in full only where Redis does not have it. All scripts may run at
 * `maxmemory`: leases and membership must go on when streams are full.
 */
import { createHash } from 'node:crypto';

export class RedisScript {
  /** With the header that Redis 7 wants. */
  readonly source: string;
  /** SHA-1 of the source, hex. */
  readonly digest: string;

  /** @param body touches only keys it is given, all of one slot */
  constructor(body: string) {
    this.source = `#!lua flags=allow-oom\n${body.trim()}\n`;
    this.digest = createHash('sha1').update(this.source).digest('hex');
  }
}
