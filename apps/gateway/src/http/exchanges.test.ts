/**
 * The wire format against exchanges recorded from Triton 2.51, through both mounts of the route; and, in a table, what
 * Paceline answers on purpose where its answer differs.
 */
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { decodeResponse, post, RawClient, type DecodedResponse } from '../testing/http-client.js';
import { startTestServer, type TestServer } from '../testing/test-server.js';

interface Exchange {
  readonly note: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly bodyBase64?: string;
  readonly status: number;
  readonly text: string;
  readonly binaryBase64?: string;
  readonly contentEncoding?: string;
}

const EXCHANGES = readFileSync(new URL('../testing/fixtures/recorded-exchanges.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Exchange);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ limits: { maxInputBytes: 100_000 } });
});
afterAll(() => server.close());

async function exchange(
  port: number,
  path: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<DecodedResponse> {
  const client = await RawClient.connect(port);
  client.send(post(path, body, headers));
  const response = decodeResponse(await client.response());
  client.destroy();
  return response;
}

const MOUNTS = ['sockets', 'fastify'] as const;
const portOf = (mount: (typeof MOUNTS)[number]): number => (mount === 'sockets' ? server.port : server.fastifyPort);

describe.each(MOUNTS)('recorded exchanges through %s', (mount) => {
  test.each(EXCHANGES.map((e) => [`${e.note} ${e.path}`, e] as const))('%s', async (_note, e) => {
    const body = e.body ?? Buffer.from(e.bodyBase64 ?? '', 'base64');
    expect(await exchange(portOf(mount), e.path, body, e.headers)).toEqual({
      status: e.status,
      text: e.text,
      binaryBase64: e.binaryBase64,
      contentEncoding: e.contentEncoding,
    });
  });
});

const input = (model: string, datatype: string, data: string, shape = '[1,4]'): [string, string] => [
  `/v2/models/${model}/infer`,
  `{"inputs":[{"name":"INPUT0","datatype":"${datatype}","shape":${shape},"data":${data}}]}`,
];
const BYTES_JSON = '{"inputs":[{"name":"INPUT0","datatype":"BYTES","shape":[1,4],"parameters":{"binary_data_size":17}}]}';
const NO_TEXT: [string, Buffer, Record<string, string>] = [
  '/v2/models/identity_bytes/infer',
  Buffer.concat([Buffer.from(BYTES_JSON), Buffer.from([1, 0, 0, 0, 0xff]), Buffer.alloc(12)]),
  { 'Inference-Header-Content-Length': String(BYTES_JSON.length) },
];
const error = (text: string): string => JSON.stringify({ error: text });
const output = (model: string, datatype: string, data: string): string =>
  `{"model_name":"${model}","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"${datatype}","shape":[1,4],"data":${data}}]}`;
const parse = (model: string, kind: string, detail: string): string =>
  error(`Unable to parse 'data': attempt to access JSON non-${kind} as ${kind} (${detail}) for input 'INPUT0'`);

describe.each(MOUNTS)('own answers through %s', (mount) => {
  test.each<[string, [string, string | Buffer, Record<string, string>?], number, string | RegExp]>([
    [
      'FP16 in JSON',
      input('identity_fp16', 'FP16', '[0.1,65504,-1,"NaN"]'),
      200,
      output('identity_fp16', 'FP16', '[0.0999755859375,65504.0,-1.0,"NaN"]'),
    ],
    [
      'NaN as a bare word',
      input('identity_fp32', 'FP32', '[NaN,-Infinity,1,2]'),
      200,
      output('identity_fp32', 'FP32', '["NaN","-Infinity",1.0,2.0]'),
    ],
    [
      'bare words inside strings',
      input('identity_bytes', 'BYTES', '["NaN","a \\"NaN\\" b","Infinity","-Inf"]'),
      200,
      output('identity_bytes', 'BYTES', '["NaN","a \\"NaN\\" b","Infinity","-Inf"]'),
    ],
    [
      'NUL in a string',
      input('identity_bytes', 'BYTES', '["a\\u0000b","","",""]'),
      200,
      output('identity_bytes', 'BYTES', '["a\\u0000b","","",""]'),
    ],
    [
      'integer out of range',
      input('identity_int8', 'INT8', '[0,128,0,0]'),
      400,
      parse('identity_int8', 'signed-integer', 'element 1 is 128, expected INT8'),
    ],
    [
      '64-bit integer out of range',
      input('identity_int64', 'INT64', '[9223372036854775808,0,0,0]'),
      400,
      parse('identity_int64', 'signed-integer', 'element 0 is 9223372036854775808, expected INT64'),
    ],
    [
      'fraction',
      input('identity_uint8', 'UINT8', '[0,0,0,1.5]'),
      400,
      parse('identity_uint8', 'unsigned-integer', 'element 3 is 1.5, expected UINT8'),
    ],
    [
      'number for BOOL',
      input('identity_bool', 'BOOL', '[true,1,true,true]'),
      400,
      parse('identity_bool', 'boolean', 'element 1 is 1, expected BOOL'),
    ],
    [
      'too few',
      input('identity_int32', 'INT32', '[1,2,3]'),
      400,
      error(
        "Unable to parse 'data': Shape does not match true shape of 'data' field (shape [1,4] has 4 elements, 'data' has 3) for input 'INPUT0'",
      ),
    ],
    [
      'not JSON',
      ['/v2/models/add_sub/infer', '{"inputs":[{"name"'],
      400,
      /^{"error":"failed to parse the request JSON buffer: .+ position 18/,
    ],
    [
      'not UTF-8',
      ['/v2/models/add_sub/infer', Buffer.from([0xff, 0xfe])],
      400,
      error('failed to parse the request JSON buffer: Invalid encoding in string, expected UTF-8.'),
    ],
    [
      'too deep',
      ['/v2/models/add_sub/infer', `${'['.repeat(101)}${']'.repeat(101)}`],
      400,
      error('failed to parse the request JSON buffer: JSON nesting depth exceeds maximum allowed limit (100)'),
    ],
    [
      'deep inside a string only',
      ['/v2/models/add_sub/infer', `{"x":"${'['.repeat(500)}"}`],
      400,
      error("Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"),
    ],
    [
      'id of the wrong kind',
      ['/v2/models/add_sub/infer', '{"id":5,"inputs":[]}'],
      400,
      error("Unable to parse 'id': attempt to access JSON non-string as string (found 5)"),
    ],
    [
      'priority of the wrong kind',
      ['/v2/models/add_sub/infer', '{"parameters":{"priority":-1},"inputs":[]}'],
      400,
      error("Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer (found -1)"),
    ],
    [
      'two sources',
      [
        '/v2/models/identity_int32/infer',
        '{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,4],"data":[1,2,3,4],"parameters":{"binary_data_size":16}}]}',
      ],
      400,
      /But set 'data' 'binary_data_size' for input 'INPUT0'"}$/,
    ],
    [
      'binary data without its header',
      [
        '/v2/models/identity_int32/infer',
        '{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,4],"parameters":{"binary_data_size":16}}]}',
      ],
      400,
      /^{"error":"must specify valid 'Infer-Header-Content-Length'/,
    ],
    [
      'negative dimension',
      input('identity_int32', 'INT32', '[1]', '[1,-1]'),
      400,
      /^{"error":"Unable to parse 'shape': .* for input 'INPUT0'"}$/,
    ],
    ['no shape', ['/v2/models/add_sub/infer', '{"inputs":[{"name":"I","datatype":"INT32","data":[]}]}'], 400, /'shape' for input 'I'"}$/],
    ['no name', ['/v2/models/add_sub/infer', '{"inputs":[{"datatype":"INT32","data":[]}]}'], 400, /'name' for input 0"}$/],
    [
      'rank',
      input('identity_int32', 'INT32', '[]', `[${'1,'.repeat(64)}1]`),
      400,
      error("more than 64 dimensions: found 65 for input 'INPUT0'"),
    ],
    ['inputs', ['/v2/models/add_sub/infer', `{"inputs":[${'0,'.repeat(4096)}0]}`], 400, error('more than 4096 inputs: found 4097')],
    [
      'outputs',
      ['/v2/models/add_sub/infer', `{"inputs":[],"outputs":[${'0,'.repeat(4096)}0]}`],
      400,
      error('more than 4096 outputs: found 4097'),
    ],
    [
      'parameters',
      ['/v2/models/add_sub/infer', `{"inputs":[],"parameters":{${Array.from({ length: 1025 }, (_, i) => `"p${i}":1`).join(',')}}}`],
      400,
      error('more than 1024 parameters: found 1025'),
    ],
    [
      'id',
      ['/v2/models/add_sub/infer', `{"inputs":[],"id":"${'x'.repeat(1025)}"}`],
      400,
      error('request id has 1025 characters, expected at most 1024'),
    ],
    [
      'shared memory',
      [
        '/v2/models/identity_int32/infer',
        '{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,4],"parameters":{"shared_memory_region":"r"}}]}',
      ],
      501,
      /^{"error":"input 'INPUT0' asks for a shared memory region/,
    ],
    [
      'header length no number',
      [...input('identity_int32', 'INT32', '[1,2,3,4]'), { 'Inference-Header-Content-Length': '12abc' }],
      400,
      error('Unable to parse Inference-Header-Content-Length, got: 12abc'),
    ],
    [
      'unknown coding',
      [...input('identity_int32', 'INT32', '[1,2,3,4]'), { 'Content-Encoding': 'br' }],
      415,
      error('Unsupported compression type'),
    ],
    [
      'coding that is none',
      [...input('identity_int32', 'INT32', '[1,2,3,4]'), { 'Content-Encoding': 'gzip' }],
      400,
      error('failed to decompress the request body: incorrect header check'),
    ],
    [
      'bomb',
      ['/v2/models/add_sub/infer', gzipSync(Buffer.alloc(100_001)), { 'Content-Encoding': 'gzip' }],
      413,
      error(
        'decompressed request exceeds the maximum allowed input size of 100000 bytes. Use --http-max-input-size to increase the limit.',
      ),
    ],
    [
      'body too large',
      ['/v2/models/add_sub/infer', Buffer.alloc(100_001)],
      413,
      error(
        'request body size of 100001 bytes exceeds the maximum allowed input size of 100000 bytes. Use --http-max-input-size to increase the limit.',
      ),
    ],
    [
      'decoupled',
      ['/v2/models/decoupled/infer', '{"inputs":[]}'],
      501,
      error("HTTP end point doesn't support models with decoupled transaction policy"),
    ],
    ['BYTES that are no text, as JSON', NO_TEXT, 400, /output 'OUTPUT0': element 0 is not valid UTF-8/],
  ])('%s', async (_note, [path, body, headers], status, text) => {
    const response = await exchange(portOf(mount), path, body, headers);
    if (text instanceof RegExp) expect(response.text).toMatch(text);
    else expect(response.text).toBe(text);
    expect(response.status).toBe(status);
  });
});
