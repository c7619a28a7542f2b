/**
 * What clients of other servers lost on the way: tensors that are empty or scalar, half floats, NaNs, 64-bit integers and
 * strings come back from a real model bit for bit, over JSON, binary HTTP and gRPC; and what a form or the runtime cannot hold
 * is refused by name.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { identityModel, temporaryModelRepository, type RepositoryModelFiles, type TemporaryRepository } from '@paceline/testkit';
import { encodeBytes, parseJsonExact, type DataType } from '@paceline/tensor';
import { GrpcInfer } from './support/grpc-infer.js';
import { startServer, type ServerProcess } from './support/server-process.js';

const TYPES: readonly DataType[] = ['FP16', 'FP32', 'FP64', 'INT64', 'UINT64', 'BYTES'];

/** Identity over one dimension of any size, whose requests share batches. */
function batching(datatype: DataType): RepositoryModelFiles {
  const type = `TYPE_${datatype === 'BYTES' ? 'STRING' : datatype}`;
  return {
    name: `any_${datatype.toLowerCase()}`,
    config: `backend: "onnxruntime"
max_batch_size: 8
input { name: "INPUT0" data_type: ${type} dims: [ -1 ] }
output { name: "OUTPUT0" data_type: ${type} dims: [ -1 ] }
dynamic_batching { max_queue_delay_microseconds: 20000 }`,
    versions: { '1': identityModel({ datatype, dims: [-1] }) },
  };
}

const MODELS: readonly RepositoryModelFiles[] = [
  ...TYPES.map(batching),
  { name: 'vector', config: 'max_batch_size: 0', versions: { '1': identityModel({ datatype: 'FP32', dims: [-1], batching: false }) } },
  { name: 'scalar', config: 'max_batch_size: 0', versions: { '1': identityModel({ datatype: 'FP32', dims: [], batching: false }) } },
];

interface Output {
  readonly shape: readonly number[];
  readonly data: Buffer;
}

interface JsonAnswer {
  readonly error?: string;
  readonly outputs?: readonly { readonly shape: readonly number[]; readonly data: readonly unknown[]; readonly parameters?: object }[];
}

describe('tensors', () => {
  let repository: TemporaryRepository;
  let server: ServerProcess;
  let grpc: GrpcInfer;

  beforeAll(async () => {
    repository = temporaryModelRepository(MODELS);
    server = await startServer([`--model-repository=${repository.root}`]);
    grpc = new GrpcInfer(server.grpc);
  }, 60_000);
  afterAll(async () => {
    grpc.close();
    await server.stop();
    repository.remove();
  });

  async function post(model: string, body: string | Buffer, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`http://${server.http}/v2/models/${model}/infer`, { method: 'POST', body, headers });
  }

  async function viaJson(
    model: string,
    datatype: DataType,
    shape: readonly number[],
    data: string,
  ): Promise<JsonAnswer & { status: number }> {
    const input = `{"name":"INPUT0","datatype":"${datatype}","shape":${JSON.stringify(shape)},"data":${data}}`;
    const response = await post(model, `{"inputs":[${input}]}`);
    return { status: response.status, ...(parseJsonExact(await response.text()) as JsonAnswer) };
  }

  async function viaBinary(model: string, datatype: DataType, shape: readonly number[], data: Buffer): Promise<Output> {
    const head = JSON.stringify({
      inputs: [{ name: 'INPUT0', datatype, shape, parameters: { binary_data_size: data.length } }],
      parameters: { binary_data_output: true },
    });
    const response = await post(model, Buffer.concat([Buffer.from(head), data]), {
      'Inference-Header-Content-Length': String(head.length),
    });
    const body = Buffer.from(await response.arrayBuffer());
    if (response.status !== 200) throw new Error(body.toString());
    const jsonBytes = Number(response.headers.get('inference-header-content-length'));
    const answer = JSON.parse(body.toString('utf8', 0, jsonBytes)) as { outputs: [{ shape: number[] }] };
    return { shape: answer.outputs[0].shape, data: body.subarray(jsonBytes) };
  }

  async function viaGrpc(model: string, datatype: DataType, shape: readonly number[], data: Buffer): Promise<Output> {
    return (await grpc.infer(model, '', [{ name: 'INPUT0', datatype, shape, data }])).outputs[0]!;
  }

  const ROUTES = [
    ['binary HTTP', viaBinary],
    ['gRPC', viaGrpc],
  ] as const;

  describe.each(ROUTES)('over %s', (_route, infer) => {
    it.each<[string, DataType, readonly number[]]>([
      ['vector', 'FP32', [0]],
      ['any_fp32', 'FP32', [1, 0]],
      ['any_fp32', 'FP32', [2, 0]],
      ['any_bytes', 'BYTES', [2, 0]],
    ])('%s %s of shape %j comes back empty', async (model, datatype, shape) => {
      expect(await infer(model, datatype, shape, Buffer.alloc(0))).toEqual(expect.objectContaining({ shape, data: Buffer.alloc(0) }));
    });

    it('a scalar of the model file has the shape [1], as its configuration says', async () => {
      const data = Buffer.from(new Float32Array([-2.5]).buffer);
      expect(await infer('scalar', 'FP32', [1], data)).toEqual(expect.objectContaining({ shape: [1], data }));
      await expect(infer('scalar', 'FP32', [], data)).rejects.toThrow(
        "unexpected shape for input 'INPUT0' for model 'scalar'. Expected [1], got []",
      );
    });

    it('empty tensors share no batch with full ones, and nobody gets the rows of another', async () => {
      const sizes = [0, 3, 0, 3, 1, 0, 3, 1];
      const rows = (i: number): Buffer => Buffer.from(new Float32Array(2 * sizes[i]!).fill(i).buffer);
      const answers = await Promise.all(sizes.map((size, i) => infer('any_fp32', 'FP32', [2, size], rows(i))));
      for (const [i, answer] of answers.entries()) expect(answer).toEqual(expect.objectContaining({ shape: [2, sizes[i]], data: rows(i) }));
    });

    it('every half float keeps its bits', async () => {
      const data = Buffer.from(Uint16Array.from({ length: 65_536 }, (_, bits) => bits).buffer);
      expect((await infer('any_fp16', 'FP16', [8, 8192], data)).data.equals(data)).toBe(true);
    });

    it('NaNs keep their payload, infinities and zeros their sign', async () => {
      const bits = [0x7fc00000, 0x7f800001, 0xffc12345, 0x7f800000, 0xff800000, 0x80000000, 0x00000001];
      const single = Buffer.from(Uint32Array.from(bits).buffer);
      expect((await infer('any_fp32', 'FP32', [1, bits.length], single)).data.equals(single)).toBe(true);
      const double = Buffer.from(BigUint64Array.from(bits, (b) => (BigInt(b) << 32n) | 0xdeadbeefn).buffer);
      expect((await infer('any_fp64', 'FP64', [1, bits.length], double)).data.equals(double)).toBe(true);
    });

    it.each<['INT64' | 'UINT64', readonly bigint[]]>([
      ['INT64', [-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, -1n, 0n]],
      ['UINT64', [2n ** 64n - 1n, 2n ** 53n + 1n, 2n ** 63n, 0n]],
    ])('%s keeps every digit', async (datatype, values) => {
      const data = Buffer.from(BigUint64Array.from(values, (v) => BigInt.asUintN(64, v)).buffer);
      expect((await infer(`any_${datatype.toLowerCase()}`, datatype, [1, values.length], data)).data.equals(data)).toBe(true);
    });

    it('strings keep every character, and what the strings of the runtime cannot hold is refused by name', async () => {
      const controls = Array.from({ length: 127 }, (_, i) => String.fromCharCode(i + 1)).join('');
      const strings = ['', controls, 'üß日本語\u{1f600}', '\ufeff\ufffe\uffff', '日'.repeat(30_000)];
      const data = Buffer.from(encodeBytes(strings));
      expect((await infer('any_bytes', 'BYTES', [1, strings.length], data)).data.equals(data)).toBe(true);
      const refusals: readonly [Buffer, string][] = [
        [Buffer.from('b\0c'), "element 1 of input 'INPUT0' contains a zero byte"],
        [Buffer.from([0xff]), "element 1 of input 'INPUT0' is not valid UTF-8"],
      ];
      for (const [bad, text] of refusals) {
        const wire = [Buffer.from('a'), bad].map((item) => Buffer.concat([Buffer.from(Uint32Array.of(item.length).buffer), item]));
        await expect(infer('any_bytes', 'BYTES', [1, 2], Buffer.concat(wire))).rejects.toThrow(text);
      }
    });
  });

  describe('over JSON', () => {
    it.each<[string, DataType, readonly number[], string, unknown]>([
      ['vector', 'FP32', [0], '[]', []],
      ['any_fp32', 'FP32', [2, 0], '[[],[]]', []],
      ['any_bytes', 'BYTES', [2, 0], '[]', []],
      ['scalar', 'FP32', [1], '[-2.5]', [-2.5]],
      ['any_bytes', 'BYTES', [2, 1], '[["a"],["ü"]]', ['a', 'ü']],
      ['any_fp16', 'FP16', [1, 4], '[0.1,65504,65520,1e-8]', [0.0999755859375, 65504, 'Infinity', 0]],
      ['any_fp16', 'FP16', [1, 2], '["NaN","-Infinity"]', ['NaN', '-Infinity']],
      ['any_fp32', 'FP32', [1, 4], '[NaN,Infinity,"-Infinity",-0.0]', ['NaN', 'Infinity', '-Infinity', -0]],
      [
        'any_int64',
        'INT64',
        [1, 3],
        '[-9223372036854775808,9007199254740993,9223372036854775807]',
        [-(2n ** 63n), 2n ** 53n + 1n, 2n ** 63n - 1n],
      ],
      ['any_uint64', 'UINT64', [1, 2], '[18446744073709551615,9007199254740993]', [2n ** 64n - 1n, 2n ** 53n + 1n]],
    ])('%s %s %j %s', async (model, datatype, shape, data, back) => {
      const { status, outputs, error } = await viaJson(model, datatype, shape, data);
      expect({ status, error, shape: outputs?.[0]?.shape, data: outputs?.[0]?.data }).toEqual({
        status: 200,
        error: undefined,
        shape,
        data: back,
      });
    });

    it.each<[string, DataType, readonly number[], string, string]>([
      ['any_bytes', 'BYTES', [1, 2], '["a","b\\u0000"]', "element 1 of input 'INPUT0' contains a zero byte"],
      ['any_int64', 'INT64', [1, 1], '[9223372036854775808]', 'element 0 is 9223372036854775808, expected INT64'],
      ['any_fp32', 'FP32', [1, 2], '[0,"nan"]', 'element 1 is "nan", expected FP32'],
      ['any_fp32', 'FP32', [2, 0], '[1]', "shape [2,0] has 0 elements, 'data' has 1"],
      ['scalar', 'FP32', [], '[1]', "unexpected shape for input 'INPUT0' for model 'scalar'"],
    ])('%s %s %j refuses %s', async (model, datatype, shape, data, text) => {
      const { status, error } = await viaJson(model, datatype, shape, data);
      expect({ status, error }).toEqual({ status: 400, error: expect.stringContaining(text) });
    });
  });
});
