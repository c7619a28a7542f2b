import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Metadata, status, type ClientDuplexStream } from '@grpc/grpc-js';
import { ServingError, type ReplyFrame } from '@paceline/protocol';
import {
  ModelInferRequestSchema,
  ModelStreamInferResponseSchema,
  type ModelInferRequest,
  type ModelStreamInferResponse,
} from '@paceline/protocol/grpc';
import { okFrame } from '../testing/fake-lane.js';
import { addRequest, echo, GrpcHarness, int32, row, type InferInit } from '../testing/grpc-harness.js';

let t: GrpcHarness;
beforeEach(async () => {
  t = new GrpcHarness();
  await t.start();
});
afterEach(() => t.stop());

describe('ModelStreamInfer', () => {
  type Stream = ClientDuplexStream<ModelInferRequest, ModelStreamInferResponse>;
  const open = (metadata = new Metadata()): Stream =>
    t.client.makeBidiStreamRequest(
      '/inference.GRPCInferenceService/ModelStreamInfer',
      (m: ModelInferRequest) => Buffer.from(toBinary(ModelInferRequestSchema, m)),
      (b: Buffer) => fromBinary(ModelStreamInferResponseSchema, b),
      metadata,
    );
  const send = (stream: Stream, init: InferInit): void => void stream.write(create(ModelInferRequestSchema, init));
  const collect = (stream: Stream): Promise<{ responses: ModelStreamInferResponse[]; code: status; details: string }> =>
    new Promise((resolve) => {
      const responses: ModelStreamInferResponse[] = [];
      stream.on('data', (response: ModelStreamInferResponse) => responses.push(response));
      stream.on('error', () => undefined);
      stream.on('status', ({ code, details }) => resolve({ responses, code, details }));
    });
  const finalOf = (response: ModelStreamInferResponse): unknown =>
    response.inferResponse!.parameters['triton_final_response']?.parameterChoice.value;

  it('answers in the order of the requests, whatever order they finish in', async () => {
    t.handler.onInfer = () => {
      if (t.handler.held.length === 3) for (const i of [2, 0, 1]) echo(t.handler.held[i]!);
    };
    const stream = open();
    const done = collect(stream);
    for (const id of ['a', 'b', 'c']) send(stream, addRequest({ id }));
    stream.end();
    const { responses, code } = await done;
    expect(code).toBe(status.OK);
    expect(responses.map((r) => [r.errorMessage, r.inferResponse!.id, finalOf(r)])).toEqual([
      ['', 'a', true],
      ['', 'b', true],
      ['', 'c', true],
    ]);
    expect(Buffer.from(responses[0]!.inferResponse!.rawOutputContents[0]!)).toEqual(int32(...row));
  });

  it('ends well without any request', async () => {
    const stream = open();
    const done = collect(stream);
    stream.end();
    expect(await done).toMatchObject({ responses: [], code: status.OK });
  });

  it('answers each failure with a message and lives on', async () => {
    t.handler.onInfer = (held) =>
      held.request.id === 'f'
        ? held.reply({ ok: false, final: true, error: new ServingError('INTERNAL', 'the model failed') })
        : echo(held);
    const stream = open();
    const done = collect(stream);
    send(stream, { id: 'u', modelName: 'nosuch' });
    send(stream, addRequest({ id: 'm', rawInputContents: [int32(1)] }));
    send(stream, addRequest({ id: 'f' }));
    send(stream, addRequest({ id: 'g' }));
    stream.end();
    const { responses, code } = await done;
    expect(code).toBe(status.OK);
    expect(responses.map((r) => [r.errorMessage, r.inferResponse!.id, r.inferResponse!.modelName, finalOf(r)])).toEqual([
      ["Request for unknown model: 'nosuch' is not found", 'u', '', undefined],
      ["unable to find data for input tensor 'INPUT1' for model 'add_sub' in request.", 'm', '', undefined],
      ['the model failed', 'f', 'add_sub', true],
      ['', 'g', 'add_sub', true],
    ]);
  });

  it('ends with the status of the first failure when the client asks for it', async () => {
    const metadata = new Metadata();
    metadata.set('triton_grpc_error', 'true');
    const stream = open(metadata);
    const done = collect(stream);
    t.handler.onInfer = () => send(stream, { modelName: 'nosuch' });
    send(stream, addRequest());
    expect(await done).toMatchObject({
      responses: [],
      code: status.NOT_FOUND,
      details: "Request for unknown model: 'nosuch' is not found",
    });
    expect(t.handler.held[0]!.cancelled).toBe(true);
  });

  it('sends every response of a decoupled model as it comes', async () => {
    const frame = (value: number, index: number, final: boolean): ReplyFrame =>
      okFrame([{ name: 'OUT', datatype: 'INT32', shape: [1], data: int32(value) }], index, final);
    t.handler.onInfer = ({ request, reply }) => {
      if (request.modelName === 'add_sub') return;
      reply(frame(5, 0, false));
      reply(frame(6, 1, false));
      reply(okFrame([], 2, true));
      echo(t.handler.held[0]!);
    };
    const stream = open();
    const done = collect(stream);
    send(stream, addRequest({ id: 'slow' }));
    send(stream, {
      id: 'r',
      modelName: 'repeat',
      inputs: [{ name: 'IN', datatype: 'INT32', shape: [2n] }],
      rawInputContents: [int32(5, 6)],
      parameters: { triton_enable_empty_final_response: { parameterChoice: { case: 'boolParam', value: true } } },
    });
    stream.end();
    const { responses } = await done;
    expect(responses.map((r) => [r.inferResponse!.id, r.inferResponse!.outputs.length, finalOf(r)])).toEqual([
      ['r', 1, false],
      ['r', 1, false],
      ['r', 0, true],
      ['slow', 2, true],
    ]);
  });

  it('leaves out the empty last response nobody asked for', async () => {
    t.handler.onInfer = ({ reply }) => reply(okFrame([], 0, true));
    const stream = open();
    const done = collect(stream);
    send(stream, {
      modelName: 'repeat',
      inputs: [{ name: 'IN', datatype: 'INT32', shape: [0n] }],
      rawInputContents: [new Uint8Array(0)],
    });
    stream.end();
    expect(await done).toMatchObject({ responses: [], code: status.OK });
  });

  it('reads many more requests than it holds', async () => {
    t.handler.onInfer = echo;
    const stream = open();
    const done = collect(stream);
    for (let i = 0; i < 2000; i += 1) send(stream, addRequest({ id: String(i) }));
    stream.end();
    const { responses } = await done;
    expect(responses.map((r) => r.inferResponse!.id)).toEqual(Array.from({ length: 2000 }, (_, i) => String(i)));
  });

  it('cancels what is under way when the client cancels', async () => {
    const stream = open();
    const done = collect(stream);
    const told = new Promise<void>((resolve) => (t.handler.onCancel = resolve));
    t.handler.onInfer = () => stream.cancel();
    send(stream, addRequest());
    await told;
    expect((await done).code).toBe(status.CANCELLED);
  });

  it('ends a stream that sends bytes which are no message', async () => {
    const stream = t.client.makeBidiStreamRequest(
      '/inference.GRPCInferenceService/ModelStreamInfer',
      (b: Buffer) => b,
      (b: Buffer) => b,
    );
    const code = new Promise<status>((resolve) =>
      stream
        .on('status', (s) => resolve(s.code))
        .on('error', () => undefined)
        .on('data', () => undefined),
    );
    stream.write(Buffer.from([0xff]));
    expect(await code).toBe(status.INVALID_ARGUMENT);
  });
});
