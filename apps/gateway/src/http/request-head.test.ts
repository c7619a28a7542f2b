/** What the strict parser recognises, and what it leaves to node:http. */
import { describe, expect, test } from '@jest/globals';
import { negotiate } from './content-coding.js';
import { INFER_PREFIX, mayBecomeInfer, parseInferHead } from './request-head.js';

const LINE = 'POST /v2/models/m-1.x_y/infer HTTP/1.1';
const head = (...fields: string[]): string => [LINE, 'Host: h', ...fields].join('\r\n');

describe('recognised', () => {
  test('everything it needs, whatever the case of names and the space around values', () => {
    const text = head(
      'CONTENT-length:  12\t',
      'Inference-Header-Content-Length: 5',
      'Accept-Encoding: gzip',
      'content-encoding: deflate',
      'Connection: Close',
      'X-Other: any, thing',
    );
    expect(parseInferHead(text)).toEqual({
      model: 'm-1.x_y',
      version: '',
      contentLength: 12,
      credentials: {},
      close: true,
      inferenceHeaderLength: '5',
      contentEncoding: 'deflate',
      acceptEncoding: 'gzip',
    });
    expect(
      parseInferHead('POST /v2/models/m/versions/12/infer HTTP/1.1\r\nhost:\r\ncontent-length: 0\r\nconnection: keep-alive'),
    ).toMatchObject({ model: 'm', version: '12', close: false });
  });
});

describe('headers that decide about access', () => {
  const names = new Set(['authorization', 'x-api-key']);
  const read = (...fields: string[]) => parseInferHead(head('Content-Length: 1', ...fields), names);

  test('are kept, by lower-case name', () => {
    expect(read('AUTHORIZATION: Bearer a b ', 'X-Api-Key:k')?.credentials).toEqual({ authorization: 'Bearer a b', 'x-api-key': 'k' });
    expect(read('X-Other: a')?.credentials).toEqual({});
    expect(parseInferHead(head('Content-Length: 1', 'x-api-key: k'))?.credentials).toEqual({});
  });

  test('given twice they are left to node:http', () => {
    expect(read('x-api-key: a', 'X-API-Key: a')).toBeUndefined();
  });
});

describe('left alone', () => {
  const GOOD = ['Content-Length: 1'];
  test.each([
    ['no length', head()],
    ['two lengths', head(...GOOD, 'content-length: 1')],
    ['a signed length', head('Content-Length: +1')],
    ['a list of lengths', head('Content-Length: 1, 1')],
    ['a length of many digits', head(`Content-Length: ${'1'.repeat(16)}`)],
    ['chunked', head(...GOOD, 'Transfer-Encoding: chunked')],
    ['expectation', head(...GOOD, 'Expect: 100-continue')],
    ['upgrade', head(...GOOD, 'Upgrade: h2c')],
    ['a web page', head(...GOOD, 'Origin: https://page.example')],
    ['a list in Connection', head(...GOOD, 'Connection: keep-alive, x')],
    ['two hosts', head(...GOOD, 'Host: other')],
    ['no host', `${LINE}\r\nContent-Length: 1`],
    ['folding', head(...GOOD, 'X: a', ' b')],
    ['space before the colon', head('Content-Length : 1')],
    ['bare line feed', head('X: a\nContent-Length: 1')],
    ['bare carriage return', head(...GOOD, 'X: a\rb')],
    ['NUL', head(...GOOD, 'X: a\0b')],
    ['bytes beyond ASCII', head(...GOOD, 'X: é')],
    ['an empty name', head(...GOOD, ': x')],
    ['an empty line inside', head('', ...GOOD)],
    ['no colon', head(...GOOD, 'X')],
    ['HTTP/1.0', `POST /v2/models/m/infer HTTP/1.0\r\nHost: h\r\nContent-Length: 1`],
    ['lower-case method', `post /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 1`],
    ['query', `POST /v2/models/m/infer?x HTTP/1.1\r\nHost: h\r\nContent-Length: 1`],
    ['escape', `POST /v2/models/%6d/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 1`],
    ['dots', `POST /v2/models/../infer HTTP/1.1\r\nHost: h\r\nContent-Length: 1`],
    ['absolute form', `POST http://h/v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 1`],
    ['two spaces', `POST  /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 1`],
    ['version that is no number', `POST /v2/models/m/versions/a/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 1`],
  ])('%s', (_name, text) => {
    expect(parseInferHead(text)).toBeUndefined();
  });

  test('a beginning is judged by what is there', () => {
    for (let n = 1; n <= INFER_PREFIX.length; n++) {
      const part = Buffer.from(INFER_PREFIX.subarray(0, n));
      expect(mayBecomeInfer(part)).toBe(true);
      part[n - 1] = 0x21;
      expect(mayBecomeInfer(part)).toBe(false);
    }
  });
});

test.each([
  ['gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['gzip, deflate', 'gzip'],
  ['deflate, gzip', 'gzip'],
  ['gzip;q=0.5, deflate;q=0.8', 'deflate'],
  ['identity;q=1, gzip;q=0.5', 'identity'],
  ['gzip;q=0', 'identity'],
  ['gzip;q=abc', 'identity'],
  ['*', 'identity'],
  ['br', 'identity'],
  ['x-gzip', 'identity'],
  ['', 'identity'],
  ['GZIP', 'gzip'],
  ['gzip ; q=1.0', 'gzip'],
] as const)('Accept-Encoding %j is answered by %s', (accept, coding) => {
  expect(negotiate(accept)).toBe(coding);
});
