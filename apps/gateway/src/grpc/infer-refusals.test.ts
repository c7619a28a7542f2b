/** What ModelInfer refuses, with the code and the text of each, before the model hears of it. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { status } from '@grpc/grpc-js';
import { addRequest, failure, GrpcHarness, int32, row, type InferInit } from '../testing/grpc-harness.js';

let t: GrpcHarness;
beforeEach(async () => {
  t = new GrpcHarness();
  await t.start();
});
afterEach(() => t.stop());

describe('ModelInfer', () => {
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
});
