/** Bodies whose Content-Encoding lies, is cut off, nests, or unpacks to far more than any limit. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import type { Draw } from '../support/draw.js';
import type { SocketCase } from './case.js';
import { inferPath, post, type HeaderLines } from '../support/http-text.js';
import { victimRequest } from './victims.js';

/** Packed once: each unpacks to more than the servers of these tests accept, from a few kilobytes. */
const BOMB_BYTES = 24 * 1024 * 1024;
const bombs = new Map<string, Buffer>();
function bomb(filler: string): Buffer {
  const packed = bombs.get(filler) ?? gzipSync(Buffer.alloc(BOMB_BYTES, filler));
  bombs.set(filler, packed);
  return packed;
}

interface Packed {
  readonly name: string;
  readonly encoding: string;
  readonly body: Buffer;
}

const pack = (name: string, encoding: string, body: Buffer): Packed => ({ name, encoding, body });

const ATTACKS: readonly ((plain: Buffer, draw: Draw) => Packed)[] = [
  (plain, draw) => {
    const packed = gzipSync(plain);
    return pack('cut off', 'gzip', packed.subarray(0, draw.int(0, packed.length - 1)));
  },
  (plain, draw) => {
    const packed = gzipSync(plain);
    packed[draw.int(0, packed.length - 1)]! ^= 1 << draw.int(0, 7);
    return pack('a bit flipped', 'gzip', packed);
  },
  (plain, draw) => {
    const packed = deflateSync(plain);
    return pack('deflate cut off', 'deflate', packed.subarray(0, draw.int(0, packed.length - 1)));
  },
  (plain) => pack('not packed at all', 'gzip', plain),
  (plain) => pack('not packed at all', 'deflate', plain),
  (plain) => pack('raw deflate as gzip', 'gzip', deflateRawSync(plain)),
  (plain) => pack('gzip as deflate', 'deflate', gzipSync(plain)),
  (plain) => pack('brotli', 'br', brotliCompressSync(plain)),
  (plain) => pack('brotli as gzip', 'gzip', brotliCompressSync(plain)),
  (plain, draw) =>
    pack('unknown coding', draw.pick(['zstd', 'x-gzip', 'compress', 'gzip;q=1', '*', 'GZIP GZIP', '\t', '__proto__']), plain),
  (plain) => pack('packed twice', 'gzip, gzip', gzipSync(gzipSync(plain))),
  (plain) => pack('packed twice, said once', 'gzip', gzipSync(gzipSync(plain))),
  (plain, draw) => pack('something behind the end', 'gzip', Buffer.concat([gzipSync(plain), draw.bytes(draw.int(1, 40))])),
  (plain) => pack('two members', 'gzip', Buffer.concat([gzipSync(plain), gzipSync(plain)])),
  () => pack('empty', 'gzip', Buffer.alloc(0)),
  () => pack('packed nothing', 'gzip', gzipSync(Buffer.alloc(0))),
  (_, draw) => pack('noise', draw.pick(['gzip', 'deflate']), draw.bytes(draw.int(1, 2000))),
  (_, draw) =>
    pack('noise behind a gzip head', 'gzip', Buffer.concat([Buffer.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3), draw.bytes(draw.int(0, 500))])),
  (_, draw) => pack('bomb', 'gzip', bomb(draw.pick(['\u0000', ' ', '[', '9']))),
  () => pack('bomb in a bomb', 'gzip', gzipSync(bomb('\u0000'))),
  (plain) => pack('large before packing', 'gzip', gzipSync(Buffer.concat([Buffer.alloc(6_000_000, ' '), plain]))),
  (_, draw) => pack('deep inside', 'gzip', gzipSync(Buffer.from(`{"inputs":${'['.repeat(draw.int(1000, 3_000_000))}`))),
];

export function compressionAttack(draw: Draw): SocketCase {
  const { model, inputs } = victimRequest(draw);
  const plain = Buffer.from(JSON.stringify({ inputs }));
  const { name, encoding, body } = draw.pick(ATTACKS)(plain, draw);
  const extra: HeaderLines = draw.chance(0.2)
    ? [['Accept-Encoding', draw.pick(['gzip;q=abc', '*;q=0', 'gzip;q=1e9, deflate', 'br', ',,,;;;', 'gzip,'.repeat(5000)])]]
    : draw.chance(0.1)
      ? [['Inference-Header-Content-Length', draw.pick(['10', String(body.length), '0', '99999999'])]]
      : [];
  return {
    family: 'compression',
    kind: 'socket',
    port: 'http',
    what: `${model}: ${encoding.trim()} ${name}${extra.map(([header, value]) => `, ${header} ${value.slice(0, 20)}`).join('')}`,
    pieces: [post(inferPath(model), body, [['Content-Encoding', encoding], ...extra])],
    expects: 'answer',
  };
}
