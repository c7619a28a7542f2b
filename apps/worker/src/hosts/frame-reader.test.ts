import { expect, test } from '@jest/globals';
import { emptyFrame, FRAME, jsonBody, jsonFrame } from '../host-protocol/frames.js';
import { FrameReader } from './frame-reader.js';

test('frames come out whole and in order however the stream is cut', () => {
  const frames = [
    emptyFrame(FRAME.pong, 0, 1),
    jsonFrame(FRAME.statistics, 7, 2, { text: 'é'.repeat(50) }),
    emptyFrame(FRAME.unloaded, 3, 3),
  ];
  const stream = Buffer.concat(frames);
  for (let size = 1; size <= stream.byteLength; size++) {
    const seen: Buffer[] = [];
    const reader = new FrameReader((frame) => seen.push(Buffer.from(frame)), { inBytes: 0, outBytes: 0 });
    for (let at = 0; at < stream.byteLength; at += size) reader.push(stream.subarray(at, at + size));
    expect(seen).toEqual(frames);
    expect(jsonBody(seen[1]!)).toEqual({ text: 'é'.repeat(50) });
  }
});

test.each([0, 8, 17, 0xffff_ffff])('a length of %d is a broken peer', (length) => {
  const frame = emptyFrame(FRAME.pong, 0, 1);
  frame.writeUInt32LE(length, 0);
  const reader = new FrameReader(() => undefined, { inBytes: 0, outBytes: 0 });
  expect(() => reader.push(frame)).toThrow(`a frame of ${length} bytes`);
});
