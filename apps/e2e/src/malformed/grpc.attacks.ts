/** gRPC calls that are wrong as HTTP/2 requests, as frames, as protobuf, or in what they ask for. */
import { deflateSync, gzipSync } from 'node:zlib';
import type { Draw } from '../support/draw.js';
import type { GrpcCase } from './case.js';
import { DATATYPES, MODEL_NAMES, VERSIONS } from './hostile-values.js';
import { rawOf, victimRequest } from './victims.js';
import { field, frame, inferMessage, tag, varint, WIRE, type WireTensor } from './wire.js';

/** `grpc-status` of INTERNAL. */
const INTERNAL = 13;
const SERVICE = '/inference.GRPCInferenceService/';
const GRPC_BOMB = gzipSync(Buffer.alloc(24 * 1024 * 1024));

interface Base {
  readonly model: string;
  readonly tensors: readonly WireTensor[];
  readonly raw: readonly Buffer[];
  readonly draw: Draw;
}
type Attack = Pick<GrpcCase, 'what' | 'body'> & Partial<Pick<GrpcCase, 'headers' | 'leaves' | 'mayReset' | 'allowed'>>;

const message = ({ model, tensors, raw }: Base, extra?: Buffer): Buffer => inferMessage(model, tensors, raw, extra);
const sends = (what: string, sent: Buffer): Attack => ({ what, body: frame(sent) });

const SHAPES: readonly (readonly (bigint | number)[])[] = [
  [],
  [-1, 4],
  [1, -4],
  [0, 4],
  [2 ** 31, 2 ** 31],
  [2n ** 62n, 4],
  [-(2n ** 63n), -1],
  [2n ** 63n - 1n, 2n ** 63n - 1n],
  [9, 4],
  [4],
  [1, 1, 1, 4],
  Array.from({ length: 65 }, () => 1),
  Array.from({ length: 20_000 }, () => 1),
];

function wrongTensor(base: Base): Attack {
  const { draw } = base;
  const [first, ...rest] = base.tensors as readonly [WireTensor, ...WireTensor[]];
  const [what, tensor] = draw.pick<() => readonly [string, WireTensor]>([
    () => ['shape', { ...first, shape: draw.pick(SHAPES) }],
    () => ['datatype', { ...first, datatype: draw.pick(DATATYPES) }],
    () => ['name', { ...first, name: draw.pick(['INPUT9', '', '__proto__', 'x'.repeat(70_000)]) }],
    () => ['shared memory', { ...first, extra: field(4, Buffer.concat([field(1, 'shared_memory_region'), field(2, field(3, 'r'))])) }],
  ])();
  return sends(
    `${what} of ${tensor.datatype} ${tensor.shape.slice(0, 4).join('x')}`,
    inferMessage(base.model, [tensor, ...rest], base.raw),
  );
}

function wrongCounts(base: Base): Attack {
  const { model, tensors, raw, draw } = base;
  const tensor = tensors[0]!;
  const contents = field(5, Buffer.concat([tag(draw.int(1, 8), WIRE.bytes), varint(4), Buffer.of(1, 2, 3, 4)]));
  const [what, sent] = draw.pick<() => readonly [string, Buffer]>([
    () => ['no raw contents', inferMessage(model, tensors, [])],
    () => ['one raw contents too many', inferMessage(model, tensors, [...raw, Buffer.alloc(16)])],
    () => [
      '5,000 raw contents',
      inferMessage(
        model,
        tensors,
        Array.from({ length: 5000 }, () => Buffer.of(1)),
      ),
    ],
    () => [
      '5,000 inputs',
      inferMessage(
        model,
        Array.from({ length: 5000 }, () => tensor),
        raw,
      ),
    ],
    () => ['no inputs', inferMessage(model, [], raw)],
    () => ['an input twice', inferMessage(model, [...tensors, tensor], [...raw, raw[0]!])],
    () => [
      'raw contents cut',
      inferMessage(
        model,
        tensors,
        raw.map((bytes) => bytes.subarray(0, draw.int(0, bytes.length - 1))),
      ),
    ],
    () => [
      'raw contents longer',
      inferMessage(
        model,
        tensors,
        raw.map((bytes) => Buffer.concat([bytes, Buffer.alloc(draw.int(1, 99))])),
      ),
    ],
    () => [
      'noise for raw contents',
      inferMessage(
        model,
        tensors,
        raw.map(() => draw.bytes(draw.int(0, 99))),
      ),
    ],
    () => ['typed and raw contents', inferMessage(model, [{ ...tensor, extra: contents }], raw)],
    () => ['typed contents of some type', inferMessage(model, [{ ...tensor, extra: contents }], [])],
    () => [
      'outputs that are none',
      inferMessage(
        model,
        tensors,
        raw,
        Buffer.concat(Array.from({ length: draw.int(1, 50) }, () => field(6, field(1, draw.pick(['OUTPUT9', '', 'OUTPUT0']))))),
      ),
    ],
    () => [
      'classification',
      inferMessage(
        model,
        tensors,
        raw,
        field(
          6,
          Buffer.concat([
            field(1, 'OUTPUT0'),
            field(
              2,
              Buffer.concat([
                field(1, 'classification'),
                field(2, Buffer.concat([tag(2, WIRE.varint), varint(draw.pick([-1n, 0n, 2n ** 40n]))])),
              ]),
            ),
          ]),
        ),
      ),
    ],
  ])();
  return sends(what, sent);
}

function wrongProtobuf(base: Base): Attack {
  const { draw } = base;
  const whole = message(base);
  const behind = (what: string, extra: Buffer): readonly [string, Buffer] => [what, Buffer.concat([whole, extra])];
  const [what, sent] = draw.pick<() => readonly [string, Buffer]>([
    () => ['cut off', whole.subarray(0, draw.int(0, whole.length - 1))],
    () => {
      const changed = Buffer.from(whole);
      for (let i = draw.int(1, 5); i > 0; i--) changed[draw.int(0, changed.length - 1)] = draw.int(0, 255);
      return ['bytes changed', changed];
    },
    () => ['noise', draw.bytes(draw.int(1, 500))],
    () => behind('field number 0', Buffer.of(0, 0)),
    () => behind('wire type 6', Buffer.of(0x0e, 1)),
    () => behind('wire type 7', Buffer.of(0x0f, 1)),
    () => behind('a group that does not end', tag(99, WIRE.groupStart)),
    () => behind('a group that did not begin', tag(99, WIRE.groupEnd)),
    () => behind('100,000 groups', Buffer.concat(Array.from({ length: 100_000 }, () => tag(99, WIRE.groupStart)))),
    () => behind('a varint of 11 bytes', Buffer.concat([tag(99, WIRE.varint), Buffer.alloc(11, 0xff)])),
    () => behind('a length of 4 GiB', field(99, 'x', 0xffff_ffff)),
    () => behind('a length of 2^63', field(1, 'x', 2n ** 63n)),
    () => behind('unknown fields', Buffer.concat(Array.from({ length: 5000 }, (_, i) => field(100 + i, 'x')))),
    () => behind('a name that is no UTF-8', field(1, Buffer.of(0xff, 0xfe, 0xc3, 0x28))),
    () => behind('the name as a number', Buffer.concat([tag(1, WIRE.varint), varint(5)])),
    () => behind('inputs as fixed64', Buffer.concat([tag(5, WIRE.fixed64), Buffer.alloc(8)])),
    () => behind('raw contents as a group', Buffer.concat([tag(7, WIRE.groupStart), tag(7, WIRE.groupEnd)])),
    () => behind('parameters without a value', field(4, field(1, 'k'))),
    () =>
      behind(
        '2,000 parameters',
        Buffer.concat(Array.from({ length: 2000 }, (_, i) => field(4, Buffer.concat([field(1, `k${i}`), field(2, field(3, 'v'))])))),
      ),
    () => behind('the priority as a string', field(4, Buffer.concat([field(1, 'priority'), field(2, field(3, 'first'))]))),
    () => ['nothing', Buffer.alloc(0)],
    () => ['a model that does not exist', inferMessage(draw.pick(MODEL_NAMES), base.tensors, base.raw)],
    () => behind('a version that does not exist', field(2, draw.pick(VERSIONS.filter((version) => version !== '')))),
  ])();
  return sends(what, sent);
}

function wrongFrame(base: Base): Attack {
  const { draw } = base;
  const sent = message(base);
  return draw.pick<() => Attack>([
    () => ({ what: 'a frame cut off', body: frame(sent).subarray(0, draw.int(1, sent.length + 4)), allowed: [INTERNAL] }),
    () => ({ what: 'a frame that announces more', body: frame(sent, 0, sent.length + draw.int(1, 1000)), allowed: [INTERNAL] }),
    () => ({ what: 'a frame that announces 4 GiB', body: frame(sent, 0, 0xffff_ffff) }),
    () => ({ what: 'bytes behind the frame', body: Buffer.concat([frame(sent), draw.bytes(draw.int(1, 4))]), allowed: [INTERNAL] }),
    () => ({ what: 'two messages', body: Buffer.concat([frame(sent), frame(sent)]) }),
    () => ({ what: 'no message', body: Buffer.alloc(0) }),
    // gRPC's rules for compression ask for INTERNAL where the flag is set and no coding was named.
    () => ({ what: 'packed without a coding', body: frame(sent, 1), allowed: [INTERNAL] }),
    () => ({ what: `flag ${draw.int(2, 255)}`, body: frame(sent, draw.int(2, 255)), allowed: [INTERNAL] }),
  ])();
}

function wrongCompression(base: Base): Attack {
  const { draw } = base;
  const sent = message(base);
  const packed = gzipSync(sent);
  // gRPC's table of status codes wants INTERNAL for a message that cannot be unpacked.
  const of = (what: string, coding: string, body: Buffer): Attack => ({
    what,
    headers: { 'grpc-encoding': coding },
    body: frame(body, 1),
    allowed: [INTERNAL],
  });
  return draw.pick<() => Attack>([
    () => of('gzip cut off', 'gzip', packed.subarray(0, draw.int(0, packed.length - 1))),
    () => of('not gzip', 'gzip', sent),
    () => of('gzip as deflate', 'deflate', packed),
    () => of('deflate as gzip', 'gzip', deflateSync(sent)),
    () => of('unknown coding', draw.pick(['br', 'snappy', 'x', '__proto__', 'gzip,gzip']), sent),
    () => of('identity with the flag', 'identity', sent),
    () => of('a bomb', 'gzip', GRPC_BOMB),
    () => of('noise', 'gzip', draw.bytes(draw.int(1, 300))),
  ])();
}

function wrongCall(base: Base): Attack {
  const { draw } = base;
  const body = frame(message(base));
  const header = (name: string, value: string | undefined): Attack => ({
    what: `${name} ${String(value).slice(0, 40)}`,
    headers: { [name]: value },
    body,
    mayReset: true,
  });
  return draw.pick<() => Attack>([
    () =>
      header(
        ':path',
        draw.pick([
          `${SERVICE}NoSuchMethod`,
          '/no.Such/Service',
          '/',
          `${SERVICE}`,
          '//',
          `${SERVICE}ModelInfer/`,
          `/${'x'.repeat(10_000)}`,
        ]),
      ),
    () =>
      header(
        ':path',
        `${SERVICE}${draw.pick(['ServerLive', 'ModelConfig', 'ModelStatistics', 'RepositoryIndex', 'ModelMetadata', 'SystemSharedMemoryRegister', 'ModelStreamInfer'])}`,
      ),
    () => header(':path', '/grpc.health.v1.Health/Check'),
    () => header(':method', draw.pick(['GET', 'PUT', 'BREW'])),
    () =>
      header('content-type', draw.pick(['text/plain', 'application/json', 'application/grpc-web', 'application/grpc+json', '', undefined])),
    () => header('te', undefined),
    // No small timeouts: those are well-formed and may rightly end in DEADLINE_EXCEEDED.
    // What is no timeout at all the gRPC library itself answers with INTERNAL.
    () => ({
      ...header('grpc-timeout', draw.pick(['abc', '-1S', '99999999H', '999999999999S', '1', 'S', '', '1.5S'])),
      allowed: [INTERNAL],
    }),
    () => header('grpc-accept-encoding', draw.pick(['', ',,,', 'x'.repeat(3000)])),
    () => header('trace-bin', '!!!not base64!!!'),
    () => header('x-large', 'y'.repeat(draw.int(100, 8000))),
    () => header(':authority', draw.pick(['', 'other.example', 'a b', '[::1'])),
    () => ({ what: 'reset at once', body, leaves: true }),
  ])();
}

const ATTACKS = [wrongTensor, wrongCounts, wrongCounts, wrongProtobuf, wrongProtobuf, wrongFrame, wrongCompression, wrongCall] as const;

export function grpcAttack(draw: Draw): GrpcCase {
  const { model, inputs } = victimRequest(draw);
  const base: Base = {
    model,
    tensors: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
    raw: inputs.map(rawOf),
    draw,
  };
  const attack = draw.pick(ATTACKS)(base);
  return { family: 'grpc', kind: 'grpc', headers: {}, leaves: false, mayReset: false, ...attack, what: `${model}: ${attack.what}` };
}
