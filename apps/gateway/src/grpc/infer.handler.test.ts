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
