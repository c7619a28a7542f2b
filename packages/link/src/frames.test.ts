// Whatever way a stream is cut into pieces, the same frames come out of it.
import { describe, expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { CHUNK_BYTES, FRAME_MAX_BYTES, FrameReader, FrameType } from './frames.js';
import { FrameWriter } from './frame-writer.js';

function written(write: (writer: FrameWriter) => void): Buffer {
  const stream = new PassThrough({ highWaterMark: 1 << 24 });
  const writer = new FrameWriter();
  write(writer);
  writer.flush(stream);
  const bytes = stream.read() as Buffer | null;
  return bytes ?? Buffer.alloc(0);
}

function read(pieces: readonly Buffer[]): { frames: [number, string][]; chunks: Map<number, Buffer[]> } {
  const frames: [number, string][] = [];
  const chunks = new Map<number, Buffer[]>();
  const reader = new FrameReader(
    {
      onFrame: (type, body) => void frames.push([type, body.toString('hex')]),
      onChunk: (transfer, piece) => void chunks.set(transfer, [...(chunks.get(transfer) ?? []), Buffer.from(piece)]),
    },
    FRAME_MAX_BYTES,
  );
  for (const piece of pieces) reader.push(piece);
  return { frames, chunks };
}

describe('frames', () => {
  const large = Buffer.alloc(CHUNK_BYTES, 7);
  const stream = written((writer) => {
    writer.frame(0x81, [Buffer.from('one')], 3);
    writer.frame(FrameType.PING, [], 0);
    writer.header(FrameType.CHUNK, 4 + 6);
    writer.u32(9);
    writer.part(Buffer.from('sixxxx'));
    writer.frame(0x42, [Buffer.from('a'), large.subarray(0, 5000), Buffer.from('z')], 5002);
    writer.header(FrameType.ACK, 8);
    writer.f64(12345678901);
  });
  const expected = read([stream]);

  test('all of them are read from one piece', () => {
    expect(expected.frames.map(([type, body]) => [type, body.length / 2])).toEqual([
      [0x81, 3],
      [FrameType.PING, 0],
      [0x42, 5002],
      [FrameType.ACK, 8],
    ]);
    expect(Buffer.concat(expected.chunks.get(9)!).toString()).toBe('sixxxx');
  });

  test.each([1, 2, 3, 4, 5, 7, 11, 4096])('pieces of %i bytes give the same', (size) => {
    const pieces = Array.from({ length: Math.ceil(stream.length / size) }, (_, i) => stream.subarray(i * size, (i + 1) * size));
    const { frames, chunks } = read(pieces);
    expect(frames).toEqual(expected.frames);
    expect(Buffer.concat(chunks.get(9)!).toString()).toBe('sixxxx');
  });

  test('a body that came in one piece is not copied', () => {
    const bodies: Buffer[] = [];
    new FrameReader({ onFrame: (_, body) => void bodies.push(body), onChunk: () => undefined }, FRAME_MAX_BYTES).push(stream);
    expect(bodies[0]!.buffer).toBe(stream.buffer);
  });

  test('no length is believed beyond the maximum, and nothing is allocated for it', () => {
    const lie = Buffer.alloc(5);
    lie.writeUInt32LE(0xffffffff);
    expect(() => read([lie])).toThrow('expected a frame of at most');
    const empty = written((writer) => writer.frame(FrameType.CHUNK, [Buffer.alloc(4)], 4));
    expect(() => read([empty])).toThrow('expected a piece of a transfer');
  });

  test('slabs are never written twice', () => {
    const writer = new FrameWriter();
    const out = new PassThrough({ highWaterMark: 1 << 24 });
    for (let i = 0; i < 1000; i++) {
      writer.frame(0x80, [Buffer.alloc(600, i)], 600);
      if (i % 7 === 0) writer.flush(out);
    }
    writer.flush(out);
    const { frames } = read([out.read() as Buffer]);
    expect(frames.map(([, body]) => body.slice(0, 2))).toEqual(
      Array.from({ length: 1000 }, (_, i) => (i & 255).toString(16).padStart(2, '0')),
    );
  });
});
