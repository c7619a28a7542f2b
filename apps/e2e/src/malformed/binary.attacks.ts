/** Requests with tensors behind the JSON: lengths, sizes, shapes and types that do not agree with the bytes or each other. */
import type { Draw } from '../support/draw.js';
import type { SocketCase } from './case.js';
import { DATATYPES, hostileShape, hostileValue } from './hostile-values.js';
import { inferPath, post, type HeaderLines } from '../support/http-text.js';
import { rawOf, victimRequest } from './victims.js';

interface BinaryRequest {
  inputs: { [key: string]: unknown; parameters: Record<string, unknown> }[];
  outputs: unknown;
  tail: Buffer;
  /** undefined = the length of the JSON part. */
  headerLength: string | undefined;
}

interface Mutation {
  readonly name: string;
  readonly apply: (request: BinaryRequest, draw: Draw) => void;
}

const SIZES = [-1, 0, 1, 3, 1.5, '16', null, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 63, 1e300, true, []] as const;

const MUTATIONS: readonly Mutation[] = [
  { name: 'hostile binary_data_size', apply: (r, draw) => void (draw.pick(r.inputs).parameters.binary_data_size = draw.pick(SIZES)) },
  {
    name: 'binary_data_size near',
    apply: (r, draw) => void (draw.pick(r.inputs).parameters.binary_data_size = Math.max(0, r.tail.length + draw.int(-9, 9))),
  },
  { name: 'tail cut', apply: (r, draw) => void (r.tail = r.tail.subarray(0, draw.int(0, Math.max(0, r.tail.length - 1)))) },
  { name: 'tail longer', apply: (r, draw) => void (r.tail = Buffer.concat([r.tail, draw.bytes(draw.int(1, 200))])) },
  { name: 'tail of noise', apply: (r, draw) => void (r.tail = draw.bytes(draw.int(0, 400))) },
  {
    name: 'string lengths that lie',
    apply: (r, draw) => {
      r.tail = Buffer.from(r.tail);
      for (let i = 0; i + 4 <= r.tail.length && i < 16; i += 4) {
        if (draw.chance(0.5)) r.tail.writeUInt32LE(draw.pick([0xffffffff, 0x80000000, 0x7fffffff, r.tail.length, 5]), i);
      }
    },
  },
  { name: 'hostile shape', apply: (r, draw) => void (draw.pick(r.inputs).shape = hostileShape(draw)) },
  { name: 'other datatype', apply: (r, draw) => void (draw.pick(r.inputs).datatype = draw.pick(DATATYPES)) },
  { name: 'data as well', apply: (r, draw) => void (draw.pick(r.inputs).data = draw.pick<unknown>([[1, 2, 3, 4], [], null, 'x'])) },
  { name: 'no size', apply: (r, draw) => void delete draw.pick(r.inputs).parameters.binary_data_size },
  { name: 'input repeated', apply: (r, draw) => void r.inputs.push(draw.pick(r.inputs)) },
  {
    name: 'hostile parameters',
    apply: (r, draw) => void Object.assign(draw.pick(r.inputs), { parameters: { binary_data_size: hostileValue(draw) } }),
  },
  {
    name: 'outputs',
    apply: (r, draw) =>
      void (r.outputs = [{ name: draw.pick(['OUTPUT0', 'NO']), parameters: { binary_data: draw.pick<unknown>([true, 'true', 1, null]) } }]),
  },
  {
    name: 'header length',
    apply: (r, draw) =>
      void (r.headerLength = draw.pick([
        '-1',
        '0',
        '1',
        '99999999',
        '18446744073709551616',
        '1e3',
        '0x20',
        '+5',
        ' ',
        '',
        '5.0',
        'NaN',
        '5, 5',
        String(draw.int(0, 300)),
      ])),
  },
];

export function binaryAttack(draw: Draw): SocketCase {
  const { model, inputs } = victimRequest(draw);
  const tails = inputs.map(rawOf);
  const request: BinaryRequest = {
    inputs: inputs.map(({ name, datatype, shape }, i) => ({ name, datatype, shape, parameters: { binary_data_size: tails[i]!.length } })),
    outputs: undefined,
    tail: Buffer.concat(tails),
    headerLength: undefined,
  };
  const names: string[] = [];
  for (let i = draw.int(0, 2); i >= 0; i--) {
    const { name, apply } = draw.pick(MUTATIONS);
    apply(request, draw);
    names.push(name);
  }
  const json = Buffer.from(JSON.stringify({ inputs: request.inputs, outputs: request.outputs }));
  const headerLine = ['Inference-Header-Content-Length', request.headerLength ?? String(json.length)] as const;
  const headers: HeaderLines = [['Content-Type', 'application/octet-stream'], headerLine, ...(draw.chance(0.03) ? [headerLine] : [])];
  return {
    family: 'binary',
    kind: 'socket',
    port: 'http',
    what: `${model}: ${names.join(', ')}`,
    pieces: [post(inferPath(model), Buffer.concat([json, request.tail]), headers)],
    expects: 'answer',
  };
}
