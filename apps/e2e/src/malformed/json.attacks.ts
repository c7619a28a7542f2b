/** JSON requests that are wrong as documents, as text, or in where they are sent. */
import type { Draw } from '../support/draw.js';
import type { SocketCase } from './case.js';
import { DATATYPES, hostileShape, hostileValue, MODEL_NAMES, VERSIONS } from './hostile-values.js';
import { inferPath, post } from '../support/http-text.js';
import { victimRequest, type JsonInput } from './victims.js';

type Document = Record<string, unknown>;
interface Mutation {
  readonly name: string;
  readonly apply: (body: Document, draw: Draw) => void;
}

const inputsOf = (body: Document): Document[] => (Array.isArray(body.inputs) ? (body.inputs as Document[]) : []);
/** An input of the request; a throw-away object once an earlier mutation removed them all. */
const someInput = (body: Document, draw: Draw): Document => {
  const inputs = inputsOf(body).filter((input) => typeof input === 'object' && input !== null);
  return inputs.length === 0 ? {} : draw.pick(inputs);
};

/** Every object and array inside `root`, `root` included. */
function containers(root: unknown): (Document | unknown[])[] {
  if (typeof root !== 'object' || root === null) return [];
  const own = root as Document | unknown[];
  return [own, ...Object.values(own).flatMap((value) => containers(value))];
}

function replaceAnywhere(body: Document, draw: Draw, value: unknown): void {
  const place = draw.pick(containers(body).filter((c) => Object.keys(c).length > 0)) as Document;
  place[draw.pick(Object.keys(place))] = value;
}

const MUTATIONS: readonly Mutation[] = [
  { name: 'hostile value', apply: (body, draw) => replaceAnywhere(body, draw, hostileValue(draw)) },
  {
    name: 'key deleted',
    apply: (body, draw) => {
      const place = draw.pick(containers(body).filter((c) => Object.keys(c).length > 0)) as Document;
      delete place[draw.pick(Object.keys(place))];
    },
  },
  { name: 'hostile shape', apply: (body, draw) => void (someInput(body, draw).shape = hostileShape(draw)) },
  { name: 'other datatype', apply: (body, draw) => void (someInput(body, draw).datatype = draw.pick(DATATYPES)) },
  { name: 'input repeated', apply: (body, draw) => void inputsOf(body).push({ ...someInput(body, draw) }) },
  {
    name: 'many inputs',
    apply: (body, draw) =>
      void (body.inputs = Array.from({ length: draw.int(5, 3000) }, (_, i) => ({ ...someInput(body, draw), name: `INPUT${i}` }))),
  },
  {
    name: 'input renamed',
    apply: (body, draw) => void (someInput(body, draw).name = draw.pick(['INPUT9', '', 'input0', '__proto__', 'INPUT0\u0000'])),
  },
  { name: 'elements too many', apply: (body, draw) => void ((someInput(body, draw).data as unknown[] | undefined) ?? []).push?.(1, 2, 3) },
  { name: 'elements too few', apply: (body, draw) => void ((someInput(body, draw).data as unknown[] | undefined) ?? []).pop?.() },
  {
    name: 'wrong element',
    apply: (body, draw) => {
      const { data } = someInput(body, draw);
      if (Array.isArray(data)) data[draw.int(0, data.length)] = hostileValue(draw);
    },
  },
  { name: 'ragged data', apply: (body, draw) => void (someInput(body, draw).data = [[1, 2], [3], 4, [[5]]]) },
  {
    name: 'outputs',
    apply: (body, draw) => {
      const name = draw.pick(['OUTPUT0', 'OUTPUT9', '', 'INPUT0']);
      const classification = draw.pick<unknown>([-1, 0, 1, 2 ** 31, 2 ** 53, 1.5, '2', null]);
      body.outputs = Array.from({ length: draw.int(0, 3) }, () => ({ name, parameters: draw.chance(0.5) ? { classification } : {} }));
    },
  },
  { name: 'id', apply: (body, draw) => void (body.id = hostileValue(draw)) },
  {
    name: 'parameters',
    apply: (body, draw) => {
      // No `timeout`: a small one is a well-formed request that may rightly end in 504.
      const key = draw.pick(['priority', 'sequence_id', 'sequence_start', 'binary_data_output', '__proto__', 'any']);
      body.parameters = draw.chance(0.3) ? hostileValue(draw) : { [key]: hostileValue(draw) };
    },
  },
  {
    name: 'shared memory',
    apply: (body, draw) =>
      void (someInput(body, draw).parameters = { shared_memory_region: 'r', shared_memory_byte_size: draw.pick([-1, 16, 2 ** 62]) }),
  },
  { name: 'unknown keys', apply: (body, draw) => void Object.assign(body, { constructor: 1, extra: hostileValue(draw) }) },
];

interface TextMutation {
  readonly name: string;
  readonly apply: (text: Buffer, draw: Draw) => Buffer;
}

const insertAt = (text: Buffer, at: number, inserted: Buffer): Buffer => Buffer.concat([text.subarray(0, at), inserted, text.subarray(at)]);

const TEXT_MUTATIONS: readonly TextMutation[] = [
  { name: 'text cut', apply: (text, draw) => text.subarray(0, draw.int(0, text.length - 1)) },
  {
    name: 'bytes changed',
    apply: (text, draw) => {
      const changed = Buffer.from(text);
      for (let i = draw.int(1, 4); i > 0; i--) changed[draw.int(0, changed.length - 1)] = draw.int(0, 255);
      return changed;
    },
  },
  { name: 'bytes inserted', apply: (text, draw) => insertAt(text, draw.int(0, text.length), draw.bytes(draw.int(1, 8))) },
  {
    name: 'text behind the end',
    apply: (text, draw) => Buffer.concat([text, Buffer.from(draw.pick(['}', ',{}', ' x', '\u0000', '{"inputs":[]}']))]),
  },
  { name: 'byte order mark', apply: (text) => Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), text]) },
  { name: 'broken UTF-8', apply: (text, draw) => insertAt(text, draw.int(0, text.length), Buffer.of(0xc3, 0x28, 0xff)) },
  {
    name: 'nested very deep',
    apply: (_, draw) => {
      const depth = draw.int(1000, 200_000);
      const open = draw.pick(['[', '{"a":']);
      const close = draw.chance(0.5) ? (open === '[' ? ']' : '}').repeat(depth) : '';
      return Buffer.from(`{"inputs":${open.repeat(depth)}${draw.chance(0.5) ? '1' : ''}${close}}`);
    },
  },
  {
    name: 'number of many digits',
    apply: (_, draw) =>
      Buffer.from(`{"inputs":[{"name":"INPUT0","datatype":"INT64","shape":[1,4],"data":[${'9'.repeat(draw.int(20, 50_000))},1,2,3]}]}`),
  },
  {
    name: 'exponents',
    apply: (_, draw) =>
      Buffer.from(
        `{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,4],"data":[${draw.pick(['1e999', '-1e999', '1e-999', '1E+', '0x10', '.5', '1.'])},1,2,3]}]}`,
      ),
  },
  {
    name: 'words that are no JSON',
    apply: (_, draw) =>
      Buffer.from(draw.pick(['NaN', 'undefined', "{'inputs':[]}", '{inputs:[]}', '\n', ' ', '', 'null', '[]', '0', '"x"'])),
  },
  {
    name: 'keys repeated',
    apply: (text) =>
      Buffer.from(text.toString().replace('{', '{"inputs":[{"name":"INPUT0","shape":[1]}],"inputs":[],"__proto__":{"inputs":[]},')),
  },
];

export function jsonAttack(draw: Draw): SocketCase {
  const { model, inputs } = victimRequest(draw);
  const body: Document = { id: 'm', inputs: inputs.map((input): JsonInput => ({ ...input })) };
  const names: string[] = [];
  for (let i = draw.int(0, 2); i >= 0; i--) {
    const { name, apply } = draw.pick(MUTATIONS);
    if (containers(body).every((c) => Object.keys(c).length === 0)) break;
    apply(body, draw);
    names.push(name);
  }
  let text = Buffer.from(JSON.stringify(body));
  if (draw.chance(0.3)) {
    const { name, apply } = draw.pick(TEXT_MUTATIONS);
    text = Buffer.from(apply(text, draw));
    names.push(name);
  }
  let path = inferPath(model);
  if (draw.chance(0.1)) {
    path = draw.chance(0.5) ? inferPath(draw.pick(MODEL_NAMES)) : inferPath(model, draw.pick(VERSIONS));
    names.push(`path ${path.slice(0, 60)}`);
  }
  return {
    family: 'json',
    kind: 'socket',
    port: 'http',
    what: `${model}: ${names.join(', ')}`,
    pieces: [post(path, text, [['Content-Type', 'application/json']])],
    expects: 'answer',
    // Not offered is neither side's fault, and has a status of its own.
    allowed: names.includes('shared memory') ? [501] : [],
  };
}
