import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { create, toBinary } from '@bufbuild/protobuf';
import { Metadata, status } from '@grpc/grpc-js';
import { ServingError } from '@paceline/protocol';
import { ModelInferRequestSchema } from '@paceline/protocol/grpc';
import { addRequest, echo, failure, GrpcHarness, int32, row, type InferInit } from '../testing/grpc-harness.js';

let t: GrpcHarness;
beforeEach(async () => {
  t = new GrpcHarness();
  await t.start();
});
afterEach(() => t.stop());

describe('ModelInfer', () => {
  it('echoes id, model and version and answers with raw contents', async () => {
    t.handler.onInfer = echo;
    const reply = await t.call(
      'modelInfer',
      addRequest({
        id: 'abc',
        outputs: [
          { name: 'OUTPUT1' },
          { name: 'OUTPUT0', parameters: { classification: { parameterChoice: { case: 'int64Param', value: 3n } } } },
        ],
      }),
    );
    expect([reply.modelName, reply.modelVersion, reply.id]).toEqual(['add_sub', '1', 'abc']);
    expect(reply.outputs.map((o) => [o.name, o.datatype, o.shape])).toEqual([
      ['OUTPUT0', 'INT32', [1n, 16n]],
      ['OUTPUT1', 'INT32', [1n, 16n]],
    ]);
    expect(reply.rawOutputContents.map((raw) => Buffer.from(raw))).toEqual([int32(...row), int32(...row)]);
    expect(reply.outputs.every((o) => o.contents === undefined)).toBe(true);
    expect(t.handler.held[0]!.request).toMatchObject({
      modelName: 'add_sub',
      modelVersion: '1',
      id: 'abc',
      outputs: [
        { name: 'OUTPUT1', classification: 0 },
        { name: 'OUTPUT0', classification: 3 },
      ],
    });
  });

  it('says where the time went when the client asks for it', async () => {
    const timings = { queueNs: 1_499, computeInputNs: 2_000, computeInferNs: 3_500_000, computeOutputNs: 499, batchRows: 6 };
    t.handler.onInfer = ({ reply }) => reply({ ok: true, index: 0, final: true, outputs: [], timings });
    const asked = (value: boolean): InferInit =>
      addRequest({ parameters: { paceline_timings: { parameterChoice: { case: 'boolParam', value } } } });
    const { parameters } = await t.call('modelInfer', asked(true));
    expect(Object.fromEntries(Object.entries(parameters).map(([name, { parameterChoice }]) => [name, parameterChoice.value]))).toEqual({
      queue_us: 1n,
      compute_input_us: 2n,
      compute_infer_us: 3500n,
      compute_output_us: 0n,
      batch_size: 6n,
    });
    expect((await t.call('modelInfer', asked(false))).parameters).toEqual({});
    expect((await t.call('modelInfer', addRequest())).parameters).toEqual({});
    const wrong = addRequest({ parameters: { paceline_timings: { parameterChoice: { case: 'int64Param', value: 1n } } } });
    expect(await failure(t.call('modelInfer', wrong))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "invalid value for parameter 'paceline_timings': expected true or false, found bigint",
    });
    expect(t.statistics.find('add_sub', '1')!.refusedByReason).toEqual(new Map([['parameter_invalid', 1]]));
  });

  it('counts what it refuses, by model where that is known', async () => {
    await failure(t.call('modelInfer', { modelName: 'nosuch' }));
    await failure(t.call('modelInfer', addRequest({ rawInputContents: [new Uint8Array(64)] })));
    await failure(t.call('modelInfer', addRequest({ modelName: 'repeat' })));
    await failure(t.bytesCall('/inference.GRPCInferenceService/ModelInfer', new Uint8Array([0xff])));
    const { unknownModel } = t.statistics;
    expect([unknownModel.received, unknownModel.refusedByReason.get('not_found')]).toEqual([2, 1]);
    expect([...t.statistics.find('add_sub', '1')!.refusedByReason.keys()]).toEqual(['missing_input_data']);
    expect([...t.statistics.find('repeat', '1')!.refusedByReason.keys()]).toEqual(['decoupled_model']);
  });

  it('takes typed contents', async () => {
    t.handler.onInfer = echo;
    const reply = await t.call(
      'modelInfer',
      addRequest({
        rawInputContents: [],
        inputs: [
          { name: 'INPUT0', datatype: 'INT32', shape: [1n, 16n], contents: { intContents: row } },
          { name: 'INPUT1', datatype: 'INT32', shape: [1n, 16n], contents: { intContents: row.map((v) => -v) } },
        ],
      }),
    );
    expect(reply.rawOutputContents.map((raw) => Buffer.from(raw))).toEqual([int32(...row), int32(...row.map((v) => -v))]);
  });

  it('carries a tensor of many frames bit by bit', async () => {
    t.handler.onInfer = echo;
    const big = Buffer.alloc(600_000);
    for (let i = 0; i < big.length; i += 1) big[i] = (i * 2654435761) >>> 24;
    const reply = await t.call('modelInfer', {
      modelName: 'identity',
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1n, 150_000n] }],
      rawInputContents: [big],
    });
    const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
    expect(hash(reply.rawOutputContents[0]!)).toBe(hash(big));
  });

  it('takes zero elements in either form', async () => {
    t.handler.onInfer = echo;
    for (const rawInputContents of [[new Uint8Array(0)], []]) {
      await t.call('modelInfer', {
        modelName: 'identity',
        inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1n, 0n] }],
        rawInputContents,
      });
    }
    expect(t.handler.held.map(({ request }) => request.inputs[0]!.data.length)).toEqual([0, 0]);
  });

  it('passes parameters on exactly', async () => {
    t.handler.onInfer = echo;
    const choice = (parameterChoice: unknown): never => ({ parameterChoice }) as never;
    await t.call(
      'modelInfer',
      addRequest({
        parameters: {
          priority: choice({ case: 'uint64Param', value: 2n ** 63n }),
          timeout: choice({ case: 'int64Param', value: 100000n }),
          text: choice({ case: 'stringParam', value: 'x' }),
          ratio: choice({ case: 'doubleParam', value: 1.25 }),
          flag: choice({ case: 'boolParam', value: true }),
          triton_enable_empty_final_response: choice({ case: 'boolParam', value: true }),
        },
      }),
    );
    expect({ ...t.handler.held[0]!.request.parameters }).toEqual({
      priority: 2n ** 63n,
      timeout: 100000n,
      text: 'x',
      ratio: 1.25,
      flag: true,
    });
  });

  const typed = (contents: object, datatype = 'INT32'): InferInit =>
    addRequest({ rawInputContents: [], inputs: [{ name: 'INPUT0', datatype, shape: [1n, 16n], contents }] as never });
  const parameter = (name: string, parameterChoice: unknown): InferInit =>
    addRequest({ parameters: { [name]: { parameterChoice } } as never });
  it.each<[string, InferInit, string]>([
    [
      'raw and typed mixed',
      addRequest({
        inputs: [
          { name: 'INPUT0', datatype: 'INT32', shape: [1n, 16n] },
          { name: 'INPUT1', datatype: 'INT32', shape: [1n, 16n], contents: { intContents: row } },
        ],
      }),
      "contents field must not be specified when using raw_input_contents for 'INPUT1' for model 'add_sub'",
    ],
    [
      'too few raw',
      addRequest({ rawInputContents: [int32(...row)] }),
      "unable to find data for input tensor 'INPUT1' for model 'add_sub' in request.",
    ],
    [
      'surplus raw',
      addRequest({ rawInputContents: [int32(1), int32(2), int32(3)] }),
      "expected one raw_input_contents for each of 2 inputs but got 3 for model 'add_sub'",
    ],
    ['no data', addRequest({ rawInputContents: [] }), "unable to find data for input tensor 'INPUT0' for model 'add_sub' in request."],
    ['empty contents', typed({}), "unable to find data for input tensor 'INPUT0' for model 'add_sub' in request."],
    [
      'the wrong field',
      typed({ fp32Contents: [1] }),
      "unexpected explicit tensor data for input tensor 'INPUT0' for model 'add_sub' of type 'FP32', expected datatype 'INT32'",
    ],
    [
      'two fields',
      typed({ intContents: row, fp32Contents: [1] }),
      "unexpected explicit tensor data for input tensor 'INPUT0' for model 'add_sub', binary data was already supplied.",
    ],
    [
      'typed FP16',
      typed({ fp32Contents: [1] }, 'FP16'),
      "unexpected explicit tensor data for input tensor 'INPUT0' for model 'add_sub' of type 'FP32', expected datatype 'FP16'",
    ],
    [
      'a value out of range',
      typed({ intContents: [1, 200] }, 'INT8'),
      "element 1 of input tensor 'INPUT0' for model 'add_sub' is 200, which datatype 'INT8' cannot hold",
    ],
    [
      'an unknown datatype',
      addRequest({ id: '7', inputs: [{ name: 'INPUT0', datatype: 'FOO', shape: [1n, 16n] }] }),
      "[request id: 7] inference input 'INPUT0' data-type is 'FOO', but model 'add_sub' expects 'INT32'",
    ],
    [
      'no classes',
      addRequest({
        outputs: [{ name: 'OUTPUT0', parameters: { classification: { parameterChoice: { case: 'int64Param', value: 0n } } } }],
      }),
      "invalid value for 'classification' parameter of output 'OUTPUT0': 0, expected a count of at least 1",
    ],
    [
      'a priority in words',
      parameter('priority', { case: 'stringParam', value: '1' }),
      "invalid value type for 'priority' parameter, expected int64_param or uint64_param.",
    ],
    [
      'a timeout in words',
      parameter('timeout', { case: 'stringParam', value: 'x' }),
      "invalid value type for 'timeout' parameter, expected int64_param.",
    ],
    [
      'a sequence id that is a flag',
      parameter('sequence_id', { case: 'boolParam', value: true }),
      "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
    ],
    [
      'a sequence start that is a number',
      parameter('sequence_start', { case: 'int64Param', value: 1n }),
      "invalid value type for 'sequence_start' parameter, expected bool_param.",
    ],
    [
      'a reserved parameter',
      parameter('triton_x', { case: 'int64Param', value: 1n }),
      "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response",
    ],
    [
      'a parameter without a value',
      parameter('empty', { case: undefined }),
      "invalid value type for 'empty' parameter, expected int64_param, bool_param, or string_param.",
    ],
  ])('refuses %s', async (_what, request, details) => {
    expect(await failure(t.call('modelInfer', request))).toMatchObject({ code: status.INVALID_ARGUMENT, details });
    expect(t.handler.held).toEqual([]);
  });

  it.each<[string, InferInit, status, string]>([
    ['an unknown model', { modelName: 'nosuch' }, status.NOT_FOUND, "Request for unknown model: 'nosuch' is not found"],
    [
      'an unknown version',
      addRequest({ modelVersion: '9' }),
      status.NOT_FOUND,
      "Request for unknown model: 'add_sub' version 9 is not found",
    ],
    [
      'a decoupled model',
      { modelName: 'repeat' },
      status.UNIMPLEMENTED,
      "ModelInfer RPC doesn't support models with decoupled transaction policy",
    ],
    [
      'shared memory',
      addRequest({
        inputs: [
          {
            name: 'INPUT0',
            datatype: 'INT32',
            shape: [1n, 16n],
            parameters: { shared_memory_region: { parameterChoice: { case: 'stringParam', value: 'r' } } },
          },
        ],
      }),
      status.UNIMPLEMENTED,
      "'INPUT0' names a shared memory region, but this server does not serve shared memory: send the data in the request",
    ],
  ])('refuses %s', async (_what, request, code, details) => {
    expect(await failure(t.call('modelInfer', request))).toMatchObject({ code, details });
  });

  it("refuses bytes that are no message as the client's fault", async () => {
    const error = await failure(t.bytesCall('/inference.GRPCInferenceService/ModelInfer', Buffer.from([0x0a, 0xff])));
    expect(error).toMatchObject({ code: status.INVALID_ARGUMENT, details: expect.stringMatching(/^Unable to parse request/) });
  });

  it('answers with the code, the text and the hints of a failed request', async () => {
    t.handler.onInfer = ({ reply }) =>
      reply({
        ok: false,
        final: true,
        error: new ServingError('RESOURCE_EXHAUSTED', 'Exceeds maximum queue size', { reason: 'queue_full', retryAfterMs: 12.5 }),
      });
    const error = await failure(t.call('modelInfer', addRequest()));
    expect(error).toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: 'Exceeds maximum queue size' });
    expect(error.metadata.get('grpc-retry-pushback-ms')).toEqual(['13']);
    expect(error.metadata.get('paceline-reason')).toEqual(['queue_full']);
  });

  it('keeps the text of a bug to itself', async () => {
    t.handler.infer = () => {
      throw new Error('a secret');
    };
    const error = await failure(t.call('modelInfer', addRequest()));
    expect(error.code).toBe(status.INTERNAL);
    expect(error.details).not.toContain('secret');
  });

  it('cancels the request when the client does', async () => {
    const told = new Promise<void>((resolve) => (t.handler.onCancel = resolve));
    t.handler.onInfer = () => pending.cancel();
    const pending = t.client.makeUnaryRequest(
      '/inference.GRPCInferenceService/ModelInfer',
      (b: Buffer) => b,
      (b: Buffer) => b,
      Buffer.from(toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, addRequest()))),
      () => undefined,
    );
    await told;
    expect(t.handler.held[0]!.cancelled).toBe(true);
  });

  it("cancels the request when the client's deadline passes", async () => {
    const told = new Promise<void>((resolve) => (t.handler.onCancel = resolve));
    const error = await failure(
      t.bytesCall(
        '/inference.GRPCInferenceService/ModelInfer',
        toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, addRequest())),
        new Metadata(),
        { deadline: Date.now() + 30 },
      ),
    );
    expect(error.code).toBe(status.DEADLINE_EXCEEDED);
    await told;
    expect(t.handler.held[0]!.cancelled).toBe(true);
  });
});
