import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { create, fromBinary, toBinary, type DescMessage, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, status, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js';
import { FakeClock } from '@paceline/clock/testing';
import { ServingError, type InferRequest, type LoadParameter, type ReplyFrame } from '@paceline/protocol';
import { GRPCInferenceService, ModelInferRequestSchema, ModelStreamInferResponseSchema, type ModelInferRequest, type ModelStreamInferResponse } from '@paceline/protocol/grpc';
import { HealthCheckRequestSchema, HealthCheckResponseSchema } from '@paceline/protocol/health';
import { createLogger, SILENT, StatisticsRegistry } from '@paceline/telemetry';
import type { InferHandler } from '../infer/infer-service.js';
import { catalogOf, fakeModel, okFrame } from '../testing/fake-lane.js';
import { createGrpcServer, type GrpcServer } from './grpc.server.js';

const add = fakeModel({ name: 'add_sub', inputs: [['INPUT0', 'INT32', [-1, 16]], ['INPUT1', 'INT32', [-1, 16]]] });
const ident = fakeModel({ name: 'identity', inputs: [['INPUT0', 'FP32', [-1, -1]]] });
const repeat = fakeModel({ name: 'repeat', maxBatchSize: 0, inputs: [['IN', 'INT32', [-1]]], decoupled: true });
const catalog = catalogOf(add, ident, repeat);

interface Held {
  readonly request: InferRequest;
  readonly reply: (frame: ReplyFrame) => void;
  cancelled: boolean;
}

/** Keeps each request until the test answers it; `onInfer` is told of each. */
class HeldHandler implements InferHandler {
  readonly held: Held[] = [];
  onInfer: ((held: Held) => void) | undefined;
  onCancel: (() => void) | undefined;

  infer(request: InferRequest, onReply: (frame: ReplyFrame) => void): ReturnType<InferHandler['infer']> {
    const held: Held = { request, reply: onReply, cancelled: false };
    this.held.push(held);
    queueMicrotask(() => this.onInfer?.(held));
    return {
      model: catalog.resolve(request.modelName, request.modelVersion),
      cancel: () => {
        held.cancelled = true;
        this.onCancel?.();
      },
    };
  }
}

const echo = (held: Held): void => held.reply(okFrame(held.request.inputs.map((input, i) => ({ ...input, name: `OUTPUT${i}` }))));
const int32 = (...values: number[]): Buffer => Buffer.from(Int32Array.from(values).buffer);
const row = Array.from({ length: 16 }, (_, i) => i);

describe('the gRPC server', () => {
  let server: GrpcServer;
  let client: Client;
  let handler: HeldHandler;
  let clock: FakeClock;
  let ready = true;
  const loads: [string, Readonly<Record<string, LoadParameter>>][] = [];
  const unloads: [string, boolean][] = [];

  beforeEach(async () => {
    ready = true;
    handler = new HeldHandler();
    clock = new FakeClock();
    loads.length = 0;
    unloads.length = 0;
    server = createGrpcServer({
      catalog,
      control: {
        index: () => [{ name: 'add_sub', version: '1', state: 'READY' }, { name: 'broken', version: '1', state: 'UNAVAILABLE', reason: 'no file' }],
        load: async (name, parameters) => void loads.push([name, parameters]),
        unload: async (name, { unloadDependents }) => void unloads.push([name, unloadDependents]),
      },
      statistics: new StatisticsRegistry(),
      inferHandler: handler,
      info: { name: 'paceline', version: '1.2.3', extensions: ['statistics'], isLive: () => true, isReady: () => ready },
      limits: { maxRequestBytes: 1_000_000 },
      logger: createLogger(SILENT),
      clock,
    });
    const port = await server.listen('127.0.0.1:0');
    client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.max_receive_message_length': -1 });
  });
  afterEach(async () => {
    client.close();
    const closed = server.close(0);
    clock.advance(1);
    await closed;
  });

  const bytesCall = (path: string, bytes: Uint8Array, metadata = new Metadata(), options = {}): Promise<Buffer> =>
    new Promise((resolve, reject) =>
      client.makeUnaryRequest(path, (b: Buffer) => b, (b: Buffer) => b, Buffer.from(bytes), metadata, options, (error, value) => (error ? reject(error) : resolve(value!))),
    );
  async function call<K extends Exclude<keyof typeof GRPCInferenceService.method, 'modelStreamInfer'>>(
    name: K,
    init: MessageInitShape<(typeof GRPCInferenceService.method)[K]['input']>,
    metadata?: Metadata,
  ): Promise<MessageShape<(typeof GRPCInferenceService.method)[K]['output']>> {
    const method = GRPCInferenceService.method[name] as { input: DescMessage; output: DescMessage; name: string };
    const bytes = await bytesCall(`/inference.GRPCInferenceService/${method.name}`, toBinary(method.input, create(method.input, init as never)), metadata);
    return fromBinary(method.output, bytes) as never;
  }
  const failure = async (promise: Promise<unknown>): Promise<ServiceError> =>
    promise.then(
      () => {
        throw new Error('the call succeeded');
      },
      (error: ServiceError) => error,
    );
  const addRequest = (more: MessageInitShape<typeof ModelInferRequestSchema> = {}): MessageInitShape<typeof ModelInferRequestSchema> => ({
    modelName: 'add_sub',
    inputs: [{ name: 'INPUT0', datatype: 'INT32', shape: [1n, 16n] }, { name: 'INPUT1', datatype: 'INT32', shape: [1n, 16n] }],
    rawInputContents: [int32(...row), int32(...row)],
    ...more,
  });

  describe('ModelInfer', () => {
    it('echoes id, model and version and answers with raw contents', async () => {
      handler.onInfer = echo;
      const reply = await call('modelInfer', addRequest({ id: 'abc', outputs: [{ name: 'OUTPUT1' }, { name: 'OUTPUT0', parameters: { classification: { parameterChoice: { case: 'int64Param', value: 3n } } } }] }));
      expect([reply.modelName, reply.modelVersion, reply.id]).toEqual(['add_sub', '1', 'abc']);
      expect(reply.outputs.map((o) => [o.name, o.datatype, o.shape])).toEqual([['OUTPUT0', 'INT32', [1n, 16n]], ['OUTPUT1', 'INT32', [1n, 16n]]]);
      expect(reply.rawOutputContents.map((raw) => Buffer.from(raw))).toEqual([int32(...row), int32(...row)]);
      expect(reply.outputs.every((o) => o.contents === undefined)).toBe(true);
      expect(handler.held[0]!.request).toMatchObject({ modelName: 'add_sub', modelVersion: '1', id: 'abc', outputs: [{ name: 'OUTPUT1', classification: 0 }, { name: 'OUTPUT0', classification: 3 }] });
    });

    it('takes typed contents', async () => {
      handler.onInfer = echo;
      const reply = await call('modelInfer', addRequest({ rawInputContents: [], inputs: [{ name: 'INPUT0', datatype: 'INT32', shape: [1n, 16n], contents: { intContents: row } }, { name: 'INPUT1', datatype: 'INT32', shape: [1n, 16n], contents: { intContents: row.map((v) => -v) } }] }));
      expect(reply.rawOutputContents.map((raw) => Buffer.from(raw))).toEqual([int32(...row), int32(...row.map((v) => -v))]);
    });

    it('carries a tensor of many frames bit by bit', async () => {
      handler.onInfer = echo;
      const big = Buffer.alloc(600_000);
      for (let i = 0; i < big.length; i += 1) big[i] = (i * 2654435761) >>> 24;
      const reply = await call('modelInfer', { modelName: 'identity', inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1n, 150_000n] }], rawInputContents: [big] });
      const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
      expect(hash(reply.rawOutputContents[0]!)).toBe(hash(big));
    });

    it('takes zero elements in either form', async () => {
      handler.onInfer = echo;
      for (const rawInputContents of [[new Uint8Array(0)], []]) {
        await call('modelInfer', { modelName: 'identity', inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1n, 0n] }], rawInputContents });
      }
      expect(handler.held.map(({ request }) => request.inputs[0]!.data.length)).toEqual([0, 0]);
    });

    it('passes parameters on exactly', async () => {
      handler.onInfer = echo;
      const choice = (parameterChoice: unknown): never => ({ parameterChoice }) as never;
      await call('modelInfer', addRequest({ parameters: { priority: choice({ case: 'uint64Param', value: 2n ** 63n }), timeout: choice({ case: 'int64Param', value: 100000n }), text: choice({ case: 'stringParam', value: 'x' }), ratio: choice({ case: 'doubleParam', value: 1.25 }), flag: choice({ case: 'boolParam', value: true }), triton_enable_empty_final_response: choice({ case: 'boolParam', value: true }) } }));
      expect({ ...handler.held[0]!.request.parameters }).toEqual({ priority: 2n ** 63n, timeout: 100000n, text: 'x', ratio: 1.25, flag: true });
    });

    const typed = (contents: object, datatype = 'INT32'): MessageInitShape<typeof ModelInferRequestSchema> => addRequest({ rawInputContents: [], inputs: [{ name: 'INPUT0', datatype, shape: [1n, 16n], contents }] as never });
    const parameter = (name: string, parameterChoice: unknown): MessageInitShape<typeof ModelInferRequestSchema> => addRequest({ parameters: { [name]: { parameterChoice } } as never });
    it.each<[string, MessageInitShape<typeof ModelInferRequestSchema>, string]>([
      ['raw and typed mixed', addRequest({ inputs: [{ name: 'INPUT0', datatype: 'INT32', shape: [1n, 16n] }, { name: 'INPUT1', datatype: 'INT32', shape: [1n, 16n], contents: { intContents: row } }] }), "contents field must not be specified when using raw_input_contents for 'INPUT1' for model 'add_sub'"],
      ['too few raw', addRequest({ rawInputContents: [int32(...row)] }), "unable to find data for input tensor 'INPUT1' for model 'add_sub' in request."],
      ['surplus raw', addRequest({ rawInputContents: [int32(1), int32(2), int32(3)] }), "expected one raw_input_contents for each of 2 inputs but got 3 for model 'add_sub'"],
      ['no data', addRequest({ rawInputContents: [] }), "unable to find data for input tensor 'INPUT0' for model 'add_sub' in request."],
      ['empty contents', typed({}), "unable to find data for input tensor 'INPUT0' for model 'add_sub' in request."],
      ['the wrong field', typed({ fp32Contents: [1] }), "unexpected explicit tensor data for input tensor 'INPUT0' for model 'add_sub' of type 'FP32', expected datatype 'INT32'"],
      ['two fields', typed({ intContents: row, fp32Contents: [1] }), "unexpected explicit tensor data for input tensor 'INPUT0' for model 'add_sub', binary data was already supplied."],
      ['typed FP16', typed({ fp32Contents: [1] }, 'FP16'), "unexpected explicit tensor data for input tensor 'INPUT0' for model 'add_sub' of type 'FP32', expected datatype 'FP16'"],
      ['a value out of range', typed({ intContents: [1, 200] }, 'INT8'), "element 1 of input tensor 'INPUT0' for model 'add_sub' is 200, which datatype 'INT8' cannot hold"],
      ['an unknown datatype', addRequest({ id: '7', inputs: [{ name: 'INPUT0', datatype: 'FOO', shape: [1n, 16n] }] }), "[request id: 7] inference input 'INPUT0' data-type is 'FOO', but model 'add_sub' expects 'INT32'"],
      ['a priority in words', parameter('priority', { case: 'stringParam', value: '1' }), "invalid value type for 'priority' parameter, expected int64_param or uint64_param."],
      ['a timeout in words', parameter('timeout', { case: 'stringParam', value: 'x' }), "invalid value type for 'timeout' parameter, expected int64_param."],
      ['a sequence id that is a flag', parameter('sequence_id', { case: 'boolParam', value: true }), "invalid value type for 'sequence_id' parameter, expected int64_param or string_param."],
      ['a sequence start that is a number', parameter('sequence_start', { case: 'int64Param', value: 1n }), "invalid value type for 'sequence_start' parameter, expected bool_param."],
      ['a reserved parameter', parameter('triton_x', { case: 'int64Param', value: 1n }), "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response"],
      ['a parameter without a value', parameter('empty', { case: undefined }), "invalid value type for 'empty' parameter, expected int64_param, bool_param, or string_param."],
    ])('refuses %s', async (_what, request, details) => {
      expect(await failure(call('modelInfer', request))).toMatchObject({ code: status.INVALID_ARGUMENT, details });
      expect(handler.held).toEqual([]);
    });

    it.each<[string, MessageInitShape<typeof ModelInferRequestSchema>, status, string]>([
      ['an unknown model', { modelName: 'nosuch' }, status.NOT_FOUND, "Request for unknown model: 'nosuch' is not found"],
      ['an unknown version', addRequest({ modelVersion: '9' }), status.NOT_FOUND, "Request for unknown model: 'add_sub' version 9 is not found"],
      ['a decoupled model', { modelName: 'repeat' }, status.UNIMPLEMENTED, "ModelInfer RPC doesn't support models with decoupled transaction policy"],
      ['shared memory', addRequest({ inputs: [{ name: 'INPUT0', datatype: 'INT32', shape: [1n, 16n], parameters: { shared_memory_region: { parameterChoice: { case: 'stringParam', value: 'r' } } } }] }), status.UNIMPLEMENTED, "'INPUT0' names a shared memory region, but this server does not serve shared memory: send the data in the request"],
    ])('refuses %s', async (_what, request, code, details) => {
      expect(await failure(call('modelInfer', request))).toMatchObject({ code, details });
    });

    it('refuses bytes that are no message as the client\'s fault', async () => {
      const error = await failure(bytesCall('/inference.GRPCInferenceService/ModelInfer', Buffer.from([0x0a, 0xff])));
      expect(error).toMatchObject({ code: status.INVALID_ARGUMENT, details: expect.stringMatching(/^Unable to parse request/) });
    });

    it('names both sizes of a message that is too large, and the connection stays usable', async () => {
      handler.onInfer = echo;
      const error = await failure(bytesCall('/inference.GRPCInferenceService/ModelInfer', Buffer.alloc(1_000_001)));
      expect(error).toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: expect.stringMatching(/1000001.*1000000/) });
      expect((await call('modelInfer', addRequest())).modelName).toBe('add_sub');
    });

    it('answers with the code, the text and the hints of a failed request', async () => {
      handler.onInfer = ({ reply }) => reply({ ok: false, final: true, error: new ServingError('RESOURCE_EXHAUSTED', 'Exceeds maximum queue size', { reason: 'queue_full', retryAfterMs: 12.5 }) });
      const error = await failure(call('modelInfer', addRequest()));
      expect(error).toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: 'Exceeds maximum queue size' });
      expect(error.metadata.get('grpc-retry-pushback-ms')).toEqual(['13']);
      expect(error.metadata.get('paceline-reason')).toEqual(['queue_full']);
    });

    it('keeps the text of a bug to itself', async () => {
      handler.infer = () => {
        throw new Error('a secret');
      };
      const error = await failure(call('modelInfer', addRequest()));
      expect(error.code).toBe(status.INTERNAL);
      expect(error.details).not.toContain('secret');
    });

    it('cancels the request when the client does', async () => {
      const told = new Promise<void>((resolve) => (handler.onCancel = resolve));
      handler.onInfer = () => pending.cancel();
      const pending = client.makeUnaryRequest('/inference.GRPCInferenceService/ModelInfer', (b: Buffer) => b, (b: Buffer) => b, Buffer.from(toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, addRequest()))), () => undefined);
      await told;
      expect(handler.held[0]!.cancelled).toBe(true);
    });

    it('cancels the request when the client\'s deadline passes', async () => {
      const told = new Promise<void>((resolve) => (handler.onCancel = resolve));
      const error = await failure(bytesCall('/inference.GRPCInferenceService/ModelInfer', toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, addRequest())), new Metadata(), { deadline: Date.now() + 30 }));
      expect(error.code).toBe(status.DEADLINE_EXCEEDED);
      await told;
      expect(handler.held[0]!.cancelled).toBe(true);
    });
  });

  describe('ModelStreamInfer', () => {
    type Stream = ClientDuplexStream<ModelInferRequest, ModelStreamInferResponse>;
    const open = (metadata = new Metadata()): Stream =>
      client.makeBidiStreamRequest('/inference.GRPCInferenceService/ModelStreamInfer', (m: ModelInferRequest) => Buffer.from(toBinary(ModelInferRequestSchema, m)), (b: Buffer) => fromBinary(ModelStreamInferResponseSchema, b), metadata);
    const send = (stream: Stream, init: MessageInitShape<typeof ModelInferRequestSchema>): void => void stream.write(create(ModelInferRequestSchema, init));
    const collect = (stream: Stream): Promise<{ responses: ModelStreamInferResponse[]; code: status; details: string }> =>
      new Promise((resolve) => {
        const responses: ModelStreamInferResponse[] = [];
        stream.on('data', (response: ModelStreamInferResponse) => responses.push(response));
        stream.on('error', () => undefined);
        stream.on('status', ({ code, details }) => resolve({ responses, code, details }));
      });
    const finalOf = (response: ModelStreamInferResponse): unknown => response.inferResponse!.parameters['triton_final_response']?.parameterChoice.value;

    it('answers in the order of the requests, whatever order they finish in', async () => {
      handler.onInfer = () => {
        if (handler.held.length === 3) for (const i of [2, 0, 1]) echo(handler.held[i]!);
      };
      const stream = open();
      const done = collect(stream);
      for (const id of ['a', 'b', 'c']) send(stream, addRequest({ id }));
      stream.end();
      const { responses, code } = await done;
      expect(code).toBe(status.OK);
      expect(responses.map((r) => [r.errorMessage, r.inferResponse!.id, finalOf(r)])).toEqual([['', 'a', true], ['', 'b', true], ['', 'c', true]]);
      expect(Buffer.from(responses[0]!.inferResponse!.rawOutputContents[0]!)).toEqual(int32(...row));
    });

    it('ends well without any request', async () => {
      const stream = open();
      const done = collect(stream);
      stream.end();
      expect(await done).toMatchObject({ responses: [], code: status.OK });
    });

    it('answers each failure with a message and lives on', async () => {
      handler.onInfer = (held) => (held.request.id === 'f' ? held.reply({ ok: false, final: true, error: new ServingError('INTERNAL', 'the model failed') }) : echo(held));
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
      handler.onInfer = () => send(stream, { modelName: 'nosuch' });
      send(stream, addRequest());
      expect(await done).toMatchObject({ responses: [], code: status.NOT_FOUND, details: "Request for unknown model: 'nosuch' is not found" });
      expect(handler.held[0]!.cancelled).toBe(true);
    });

    it('sends every response of a decoupled model as it comes', async () => {
      const frame = (value: number, index: number, final: boolean): ReplyFrame => okFrame([{ name: 'OUT', datatype: 'INT32', shape: [1], data: int32(value) }], index, final);
      handler.onInfer = ({ request, reply }) => {
        if (request.modelName === 'add_sub') return;
        reply(frame(5, 0, false));
        reply(frame(6, 1, false));
        reply(okFrame([], 2, true));
        echo(handler.held[0]!);
      };
      const stream = open();
      const done = collect(stream);
      send(stream, addRequest({ id: 'slow' }));
      send(stream, { id: 'r', modelName: 'repeat', inputs: [{ name: 'IN', datatype: 'INT32', shape: [2n] }], rawInputContents: [int32(5, 6)], parameters: { triton_enable_empty_final_response: { parameterChoice: { case: 'boolParam', value: true } } } });
      stream.end();
      const { responses } = await done;
      expect(responses.map((r) => [r.inferResponse!.id, r.inferResponse!.outputs.length, finalOf(r)])).toEqual([['r', 1, false], ['r', 1, false], ['r', 0, true], ['slow', 2, true]]);
    });

    it('leaves out the empty last response nobody asked for', async () => {
      handler.onInfer = ({ reply }) => reply(okFrame([], 0, true));
      const stream = open();
      const done = collect(stream);
      send(stream, { modelName: 'repeat', inputs: [{ name: 'IN', datatype: 'INT32', shape: [0n] }], rawInputContents: [new Uint8Array(0)] });
      stream.end();
      expect(await done).toMatchObject({ responses: [], code: status.OK });
    });

    it('reads many more requests than it holds', async () => {
      handler.onInfer = echo;
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
      const told = new Promise<void>((resolve) => (handler.onCancel = resolve));
      handler.onInfer = () => stream.cancel();
      send(stream, addRequest());
      await told;
      expect((await done).code).toBe(status.CANCELLED);
    });

    it('ends a stream that sends bytes which are no message', async () => {
      const stream = client.makeBidiStreamRequest('/inference.GRPCInferenceService/ModelStreamInfer', (b: Buffer) => b, (b: Buffer) => b);
      const code = new Promise<status>((resolve) => stream.on('status', (s) => resolve(s.code)).on('error', () => undefined).on('data', () => undefined));
      stream.write(Buffer.from([0xff]));
      expect(await code).toBe(status.INVALID_ARGUMENT);
    });
  });

  describe('control', () => {
    it('describes server and models', async () => {
      expect((await call('serverLive', {})).live).toBe(true);
      expect((await call('serverReady', {})).ready).toBe(true);
      ready = false;
      expect((await call('serverReady', {})).ready).toBe(false);
      expect(await call('serverMetadata', {})).toMatchObject({ name: 'paceline', version: '1.2.3', extensions: ['statistics'] });
      expect((await call('modelReady', { name: 'add_sub' })).ready).toBe(true);
      expect((await call('modelReady', { name: 'nosuch' })).ready).toBe(false);
      const metadata = await call('modelMetadata', { name: 'add_sub' });
      expect(metadata).toMatchObject({ name: 'add_sub', versions: ['1'] });
      expect(metadata.inputs.map((i) => [i.name, i.datatype, i.shape])).toEqual([['INPUT0', 'INT32', [-1n, 16n]], ['INPUT1', 'INT32', [-1n, 16n]]]);
      expect(await failure(call('modelMetadata', { name: 'nosuch' }))).toMatchObject({ code: status.NOT_FOUND, details: "Request for unknown model: 'nosuch' is not found" });
      expect((await call('modelConfig', { name: 'add_sub' })).config).toMatchObject({ name: 'add_sub', maxBatchSize: 8 });
    });

    it('reports statistics', async () => {
      const all = await call('modelStatistics', {});
      expect(all.modelStats.map((s) => s.name)).toEqual(['add_sub', 'identity', 'repeat']);
      expect(all.modelStats[0]!.inferenceStats!.cacheMiss).toMatchObject({ count: 0n, ns: 0n });
      expect(await failure(call('modelStatistics', { name: 'nosuch' }))).toMatchObject({ code: status.INVALID_ARGUMENT, details: "requested model 'nosuch' is not available" });
    });

    it('lists, loads and unloads', async () => {
      expect((await call('repositoryIndex', {})).models.map(({ name, version, state, reason }) => [name, version, state, reason])).toEqual([['add_sub', '1', 'READY', ''], ['broken', '1', 'UNAVAILABLE', 'no file']]);
      expect(await failure(call('repositoryIndex', { repositoryName: 'x' }))).toMatchObject({ code: status.UNIMPLEMENTED, details: "'repository_name' specification is not supported" });
      await call('repositoryModelLoad', { modelName: 'm', parameters: { config: { parameterChoice: { case: 'stringParam', value: '{}' } }, 'file:1/model.onnx': { parameterChoice: { case: 'bytesParam', value: new Uint8Array([1, 2]) } } } });
      expect(loads).toEqual([['m', { config: '{}', 'file:1/model.onnx': expect.anything() }]]);
      expect([...(loads[0]![1]['file:1/model.onnx'] as Uint8Array)]).toEqual([1, 2]);
      await call('repositoryModelUnload', { modelName: 'm', parameters: { unload_dependents: { parameterChoice: { case: 'boolParam', value: true } } } });
      expect(unloads).toEqual([['m', true]]);
      const bytes = { parameterChoice: { case: 'bytesParam' as const, value: new Uint8Array(1) } };
      expect(await failure(call('repositoryModelLoad', { modelName: 'm', parameters: { config: bytes } }))).toMatchObject({ code: status.INVALID_ARGUMENT, details: "invalid value type for load parameter 'config', expected string_param." });
      expect(await failure(call('repositoryModelLoad', { modelName: 'm', parameters: { foo: bytes } }))).toMatchObject({ code: status.INVALID_ARGUMENT, details: "unrecognized load parameter 'foo'." });
    });

    it('keeps callers behind a proxy from changing models', async () => {
      const metadata = new Metadata();
      metadata.set('x-forwarded-for', '10.0.0.7');
      for (const name of ['repositoryModelLoad', 'repositoryModelUnload'] as const) {
        expect(await failure(call(name, { modelName: 'm' }, metadata))).toMatchObject({ code: status.PERMISSION_DENIED, details: expect.stringContaining("'x-forwarded-for'") });
      }
      expect([loads, unloads]).toEqual([[], []]);
    });

    it('says which methods it does not serve', async () => {
      for (const name of ['traceSetting', 'logSettings', 'systemSharedMemoryStatus', 'cudaSharedMemoryRegister'] as const) {
        expect(await failure(call(name, {}))).toMatchObject({ code: status.UNIMPLEMENTED, details: expect.stringMatching(/is not served by this server$/) });
      }
      expect((await failure(bytesCall('/inference.GRPCInferenceService/NoSuchMethod', new Uint8Array(0)))).code).toBe(status.UNIMPLEMENTED);
      expect(await failure(bytesCall('/inference.GRPCInferenceService/ServerLive', new Uint8Array([0xff])))).toMatchObject({ code: status.INVALID_ARGUMENT, details: 'Unable to parse request' });
    });
  });

  describe('grpc.health.v1', () => {
    const check = async (service: string): Promise<number> =>
      fromBinary(HealthCheckResponseSchema, await bytesCall('/grpc.health.v1.Health/Check', toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })))).status;

    it('reports readiness, whatever service is named', async () => {
      expect(await check('')).toBe(1);
      expect(await check('add_sub')).toBe(1);
      ready = false;
      expect(await check('')).toBe(2);
    });

    it('watches it', async () => {
      const stream = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', (b: Buffer) => b, (b: Buffer) => fromBinary(HealthCheckResponseSchema, b).status, Buffer.alloc(0));
      const seen: number[] = [];
      let wake: (() => void) | undefined;
      stream.on('error', () => undefined).on('data', (value: number) => {
        seen.push(value);
        wake?.();
      });
      const next = (): Promise<void> => new Promise((resolve) => (wake = resolve));
      await next();
      clock.advance(1_000_000);
      ready = false;
      clock.advance(1_000_000);
      await next();
      expect(seen).toEqual([1, 2]);
      stream.cancel();
    });
  });

  it('answers calls under way before it closes', async () => {
    const reply = call('modelInfer', addRequest());
    await new Promise<void>((resolve) => (handler.onInfer = () => resolve()));
    const closed = server.close(10_000);
    echo(handler.held[0]!);
    expect((await reply).modelName).toBe('add_sub');
    await closed;
  });

  it('ends its streams when it closes, after what they had asked', async () => {
    const watch = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', (b: Buffer) => b, (b: Buffer) => b, Buffer.alloc(0));
    const watched = new Promise<status>((resolve) => watch.on('status', (s) => resolve(s.code)).on('error', () => undefined));
    await new Promise((resolve) => watch.once('data', resolve));
    const stream = client.makeBidiStreamRequest('/inference.GRPCInferenceService/ModelStreamInfer', (m: ModelInferRequest) => Buffer.from(toBinary(ModelInferRequestSchema, m)), (b: Buffer) => fromBinary(ModelStreamInferResponseSchema, b));
    const seen: string[] = [];
    stream.on('data', (r: ModelStreamInferResponse) => seen.push(r.inferResponse!.id));
    const ended = new Promise<status>((resolve) => stream.on('status', (s) => resolve(s.code)).on('error', () => undefined));
    await new Promise<void>((resolve) => {
      handler.onInfer = () => resolve();
      stream.write(create(ModelInferRequestSchema, addRequest({ id: 'last' })));
    });
    const closed = server.close(10_000);
    expect(await watched).toBe(status.OK);
    echo(handler.held[0]!);
    expect(await ended).toBe(status.UNAVAILABLE);
    expect(seen).toEqual(['last']);
    await closed;
  });

  it('tells where it cannot listen', async () => {
    await expect(server.listen('256.0.0.1:1')).rejects.toThrow();
  });
});
