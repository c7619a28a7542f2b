// Answers are found whatever the chunks they arrive in.
import { describe, expect, test } from '@jest/globals';
import { ResponseReader } from './response-reader.js';

const STREAM = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhelloHTTP/1.1 429 Too Many\r\ncontent-length:0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc',
);

function statuses(chunkBytes: number): number[] {
  const seen: number[] = [];
  const reader = new ResponseReader((status) => seen.push(status));
  for (let at = 0; at < STREAM.length; at += chunkBytes) reader.push(STREAM.subarray(at, at + chunkBytes));
  return seen;
}

describe('ResponseReader', () => {
  test.each([1, 2, 3, 7, 40, STREAM.length])('finds three answers in chunks of %i bytes', (chunkBytes) => {
    expect(statuses(chunkBytes)).toEqual([200, 429, 200]);
  });

  test('does not report an answer before its last byte', () => {
    const seen: number[] = [];
    const reader = new ResponseReader((status) => seen.push(status));
    reader.push(STREAM.subarray(0, STREAM.indexOf('hello') + 4));
    expect(seen).toEqual([]);
    reader.push(Buffer.from('o'));
    expect(seen).toEqual([200]);
  });

  test('refuses an answer without Content-Length', () => {
    const reader = new ResponseReader(() => undefined);
    expect(() => {
      reader.push(Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'));
    }).toThrow(/Content-Length/);
  });
});
