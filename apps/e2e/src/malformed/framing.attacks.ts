/** HTTP itself is wrong: lengths, chunks, heads, request lines, and bytes that belong to no request. */
import type { Draw } from '../support/draw.js';
import type { SocketCase } from './case.js';
import { head, inferPath, post, type HeaderLines } from '../support/http-text.js';
import { victimRequest } from './victims.js';

type Framing = Pick<SocketCase, 'what' | 'pieces' | 'expects'> & Partial<Pick<SocketCase, 'port' | 'allowed'>>;
interface Base {
  readonly path: string;
  readonly body: Buffer;
  readonly draw: Draw;
}

const HOST = ['Host', 'localhost'] as const;
const line = (path: string, version = 'HTTP/1.1', method = 'POST'): string => `${method} ${path} ${version}`;
const attack = (what: string, expects: SocketCase['expects'], ...pieces: readonly Buffer[]): Framing => ({ what, expects, pieces });
const withHead = ({ path, body }: Base, headers: HeaderLines): Buffer => Buffer.concat([head(line(path), [HOST, ...headers]), body]);
const chunk = (size: string, data: Buffer | string): Buffer =>
  Buffer.concat([Buffer.from(`${size}\r\n`, 'latin1'), Buffer.from(data), Buffer.from('\r\n')]);
const CHUNKED = ['Transfer-Encoding', 'chunked'] as const;

function contentLength(base: Base): Framing {
  const right = base.body.length;
  const value = base.draw.pick([
    '-1',
    `+${right}`,
    `0x${right.toString(16)}`,
    `${right}.0`,
    '1e3',
    '18446744073709551616',
    '9'.repeat(400),
    `${right}, ${right}`,
    `${right} ${right}`,
    'x',
    '',
  ]);
  return attack(`Content-Length ${value.slice(0, 30)}`, 'close', withHead(base, [['Content-Length', value]]));
}

function twoLengths(base: Base): Framing {
  const right = String(base.body.length);
  const other = base.draw.pick([right, '0', '5', '-1']);
  return attack(
    `Content-Length twice: ${right} and ${other}`,
    'close',
    withHead(base, [
      ['Content-Length', right],
      ['Content-Length', other],
    ]),
  );
}

function lengthThatLies(base: Base): Framing {
  const right = base.body.length;
  if (base.draw.chance(0.5))
    return attack('body longer than announced', 'answer', withHead(base, [['Content-Length', String(base.draw.int(0, right - 1))]]));
  return attack('body shorter than announced', 'nothing', withHead(base, [['Content-Length', String(right + base.draw.int(1, 5000))]]));
}

function tooLong(base: Base): Framing {
  return attack(
    'a body of more than the limit announced',
    'answer',
    withHead(base, [['Content-Length', base.draw.pick(['8388609', '99999999999', '999999999999999'])]]),
  );
}

function badChunks(base: Base): Framing {
  const { draw, body } = base;
  const size = body.length.toString(16);
  const last = '0\r\n\r\n';
  const [what, expects, text] = draw.pick<readonly [string, SocketCase['expects'], Buffer]>([
    ['chunk size zz', 'close', chunk('zz', body)],
    ['chunk size -5', 'close', chunk('-5', body)],
    ['chunk size of 20 digits', 'close', chunk('f'.repeat(20), body)],
    ['chunk size 0x5', 'close', chunk('0x5', body)],
    ['chunk without its end', 'close', Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from('junk'), Buffer.from(last)])],
    ['chunk smaller than its data', 'close', Buffer.concat([chunk('1', body), Buffer.from(last)])],
    ['no last chunk', 'nothing', chunk(size, body)],
    ['chunk extensions', 'close', Buffer.concat([chunk(`${size};${'a=b;'.repeat(draw.int(1, 30_000))}`, body), Buffer.from(last)])],
    [
      'one byte a chunk',
      'answer',
      Buffer.concat([...Array.from(body.subarray(0, 400), (byte) => chunk('1', Buffer.of(byte))), Buffer.from(last)]),
    ],
    [
      'trailers',
      'close',
      Buffer.concat([chunk(size, body), Buffer.from(`0\r\nContent-Length: 0\r\n${'X: y\r\n'.repeat(draw.int(1, 3000))}\r\n`)]),
    ],
    ['line feeds alone', 'close', Buffer.concat([Buffer.from(`${size}\n`), body, Buffer.from('\n0\n\n')])],
    ['right chunks of a wrong document', 'answer', Buffer.concat([chunk('3', '{"i'), Buffer.from(last)])],
  ]);
  return attack(what, expects, head(line(base.path), [HOST, CHUNKED]), text);
}

function smuggling(base: Base): Framing {
  const second = post('/v2/repository/models/floats/unload', Buffer.from('{}'));
  const coding = base.draw.pick([
    'chunked',
    ' chunked',
    'xchunked',
    'chunked, identity',
    'gzip, chunked',
    'chunked, chunked',
    '\tchunked',
    'CHUNKED',
    '"chunked"',
  ]);
  const headers: HeaderLines = [
    ['Content-Length', '4'],
    ['Transfer-Encoding', coding],
  ];
  return attack(
    `Content-Length and Transfer-Encoding${coding === 'chunked' ? '' : ` ${coding.trim()}`}`,
    'close',
    Buffer.concat([head(line(base.path), [HOST, ...headers]), Buffer.from('0\r\n\r\n'), second]),
  );
}

function headerBomb(base: Base): Framing {
  const { draw } = base;
  const lines = draw.pick<HeaderLines>([
    Array.from({ length: draw.int(200, 20_000) }, (_, i) => [`X-${i}`, 'y'] as const),
    [['X', 'y'.repeat(draw.int(20_000, 300_000))]],
    [['y'.repeat(draw.int(20_000, 100_000)), 'x']],
    Array.from({ length: 3000 }, () => ['Cookie', 'a=b'] as const),
  ]);
  return attack(
    `${lines.length} headers of ${lines[0]![1].length} bytes`,
    'close',
    withHead(base, [...lines, ['Content-Length', String(base.body.length)]]),
  );
}

function badHeader(base: Base): Framing {
  const text = base.draw.pick([
    'Name : value',
    'no colon here',
    ': nothing before it',
    'X: a\r\n folded',
    'X: \u0000',
    'X: \u0001\u0007',
    'X: é',
    'X\u0000Y: z',
    'X(Y): z',
    'Content-Length: 1\nX: y',
    'Host: other',
    'Host: \u0000',
    'Host: a b',
    'Host: [::1',
    'Connection: close, upgrade, x',
    'Connection: Content-Length',
    'Expect: 100-continue',
    'Expect: the unexpected',
    'Upgrade: h2c',
    'Upgrade: websocket\r\nConnection: Upgrade',
    'Content-Type: \u00ff/\u00fe',
    'Content-Encoding: identity\r\nContent-Encoding: gzip',
    'Inference-Header-Content-Length: 1\r\nInference-Header-Content-Length: 2',
    'Range: bytes=0-18446744073709551615',
    'Accept: */*;q=NaN',
    'traceparent: 00-xyz-1-1',
  ]);
  const lines = Buffer.from(`${line(base.path)}\r\nHost: localhost\r\n${text}\r\nContent-Length: ${base.body.length}\r\n\r\n`, 'latin1');
  return attack(`header ${JSON.stringify(text)}`, 'close', Buffer.concat([lines, base.body]));
}

function requestLine(base: Base): Framing {
  const { path, draw } = base;
  const first = draw.pick([
    line(`http://localhost${path}`),
    line(`http://other.example${path}`),
    line(`//${path}`),
    line('*'),
    line('localhost:80', 'HTTP/1.1', 'CONNECT'),
    line('*', 'HTTP/1.1', 'OPTIONS'),
    line(path, 'HTTP/1.0'),
    line(path, 'HTTP/0.9'),
    line(path, 'HTTP/2.0'),
    line(path, 'HTTP/9.9'),
    line(path, 'HTTP/1.1 '),
    line(path, 'http/1.1'),
    line(path, 'ICY/1.1'),
    `POST ${path}`,
    `POST  ${path}  HTTP/1.1`,
    ` POST ${path} HTTP/1.1`,
    line(path, 'HTTP/1.1', 'post'),
    line(path, 'HTTP/1.1', draw.pick(['GET', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'BREW', 'P\u0000ST'])),
    line(`${path}?${'a=b&'.repeat(draw.int(1, 20_000))}`),
    line(`${path}#part`),
    line(`${path}/../infer`),
    line(`${path}%00`),
    line(`${path}/\u00ff\u00fe`),
    line(`/${'a/'.repeat(draw.int(100, 20_000))}`),
    line('/v2/models/floats/versions/1/versions/1/infer'),
    line('/v2/models//infer'),
    line('/%'),
    line('/v2/health/ready', 'HTTP/1.1', draw.pick(['POST', 'DELETE'])),
    line('/v2/repository/index', 'HTTP/1.1', 'GET'),
  ]);
  const headers: HeaderLines = draw.chance(0.9) ? [HOST] : [];
  const what = `${first.slice(0, 60)}${headers.length === 0 ? ' without a Host' : ''}`;
  return attack(what, 'close', Buffer.concat([head(first, [...headers, ['Content-Length', String(base.body.length)]]), base.body]));
}

function pipelined(base: Base): Framing {
  const { draw } = base;
  const good = post(base.path, base.body);
  const junk = draw.pick([
    draw.bytes(draw.int(1, 300)),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.from('\r\n'.repeat(2000)),
    Buffer.from('POST /v2/models/floats/infer HTTP/1.1\r\nHost'),
    Buffer.alloc(70_000, 'P'),
  ]);
  const requests = Array.from({ length: draw.int(1, 90) }, () => good);
  return attack(
    `${requests.length} pipelined requests and ${junk.length} bytes that are none`,
    'answer',
    Buffer.concat([...requests, junk]),
  );
}

function otherProtocol({ draw }: Base): Framing {
  const tls = Buffer.concat([Buffer.from('16030100c8010000c40303', 'hex'), draw.bytes(193)]);
  const [what, bytes] = draw.pick<readonly [string, Buffer]>([
    ['TLS', tls],
    ['HTTP/2', Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.from('000000040000000000', 'hex')])],
    ['noise', draw.bytes(draw.int(1, 3000))],
    ['zeros', Buffer.alloc(draw.int(1, 100_000))],
    ['SSH', Buffer.from('SSH-2.0-OpenSSH_9.6\r\n')],
    ['a Redis command', Buffer.from('*1\r\n$8\r\nFLUSHALL\r\n')],
    ['empty lines', Buffer.from('\r\n'.repeat(50_000))],
  ]);
  const port = draw.pick(['http', 'grpc'] as const);
  return {
    ...attack(`${what} on the ${port} port`, port === 'grpc' || bytes.length < 20 || what === 'empty lines' ? 'nothing' : 'close', bytes),
    port,
  };
}

function leaving(base: Base): Framing {
  const whole = post(base.path, base.body);
  const cut = base.draw.int(0, whole.length - 1);
  return attack(`left after ${cut} of ${whole.length} bytes`, 'nothing', ...(cut === 0 ? [] : [whole.subarray(0, cut)]));
}

function dribble(base: Base): Framing {
  const whole = post(base.path, base.body.subarray(0, base.body.length - 1));
  const cuts = [base.draw.int(1, 20), base.draw.int(21, 60), whole.length - base.draw.int(1, 20)];
  return attack(
    'a wrong document in four pieces',
    'answer',
    whole.subarray(0, cuts[0]),
    whole.subarray(cuts[0], cuts[1]),
    whole.subarray(cuts[1], cuts[2]),
    whole.subarray(cuts[2]),
  );
}

const ATTACKS: readonly ((base: Base) => Framing)[] = [
  contentLength,
  twoLengths,
  lengthThatLies,
  tooLong,
  badChunks,
  badChunks,
  smuggling,
  headerBomb,
  badHeader,
  badHeader,
  requestLine,
  requestLine,
  pipelined,
  otherProtocol,
  leaving,
  dribble,
];

export function framingAttack(draw: Draw): SocketCase {
  const { model, inputs } = victimRequest(draw);
  const body = Buffer.from(JSON.stringify({ inputs }));
  return { family: 'framing', kind: 'socket', port: 'http', ...draw.pick(ATTACKS)({ path: inferPath(model), body, draw }) };
}
