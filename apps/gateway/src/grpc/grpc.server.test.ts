import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, compressionAlgorithms, credentials, status } from '@grpc/grpc-js';
import {
  ModelInferRequestSchema,
  ModelStreamInferResponseSchema,
  type ModelInferRequest,
  type ModelStreamInferResponse,
} from '@paceline/protocol/grpc';
import { HealthCheckRequestSchema, HealthCheckResponseSchema } from '@paceline/protocol/health';
import { addRequest, echo, failure, GrpcHarness } from '../testing/grpc-harness.js';

let t: GrpcHarness;
beforeEach(async () => {
  t = new GrpcHarness();
  await t.start();
});
afterEach(() => t.stop());

describe('grpc.health.v1', () => {
  const check = async (service: string): Promise<number> =>
    fromBinary(
      HealthCheckResponseSchema,
      await t.bytesCall('/grpc.health.v1.Health/Check', toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }))),
    ).status;

  it('reports readiness, whatever service is named', async () => {
    expect(await check('')).toBe(1);
    expect(await check('add_sub')).toBe(1);
    t.ready = false;
    expect(await check('')).toBe(2);
  });

  it('watches it', async () => {
    const stream = t.client.makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      (b: Buffer) => b,
      (b: Buffer) => fromBinary(HealthCheckResponseSchema, b).status,
      Buffer.alloc(0),
    );
    const seen: number[] = [];
    let wake: (() => void) | undefined;
    stream
      .on('error', () => undefined)
      .on('data', (value: number) => {
        seen.push(value);
        wake?.();
      });
    const next = (): Promise<void> => new Promise((resolve) => (wake = resolve));
    await next();
    t.clock.advance(1_000_000);
    t.ready = false;
    t.clock.advance(1_000_000);
    await next();
    expect(seen).toEqual([1, 2]);
    stream.cancel();
  });
});

describe('the size limit', () => {
  it('names both sizes of a message that is too large, and the connection stays usable', async () => {
    t.handler.onInfer = echo;
    const error = await failure(t.bytesCall('/inference.GRPCInferenceService/ModelInfer', Buffer.alloc(1_000_001)));
    expect(error).toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: expect.stringMatching(/1000001.*1000000/) });
    expect([...t.statistics.unknownModel.refusedByReason]).toEqual([['body_too_large', 1]]);
    expect((await t.call('modelInfer', addRequest())).modelName).toBe('add_sub');
  });

  const compressing = async <T>(work: (path: string) => Promise<T>): Promise<T> => {
    t.client.close();
    t.client = new Client(t.address, credentials.createInsecure(), { 'grpc.default_compression_algorithm': compressionAlgorithms.gzip });
    return work('/inference.GRPCInferenceService/ModelInfer');
  };

  it('counts what a compressed message becomes, not what it is', async () => {
    const error = await compressing((path) => failure(t.bytesCall(path, Buffer.alloc(5_000_000))));
    expect(error).toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: expect.stringContaining('1000000') });
  });

  it('takes compressed messages within it', async () => {
    t.handler.onInfer = echo;
    const reply = await compressing(() => t.call('modelInfer', addRequest({ id: 'z' })));
    expect(reply.id).toBe('z');
  });
});

describe('closing', () => {
  it('answers calls under way before it closes', async () => {
    const reply = t.call('modelInfer', addRequest());
    await new Promise<void>((resolve) => (t.handler.onInfer = () => resolve()));
    const closed = t.server.close(10_000);
    echo(t.handler.held[0]!);
    expect((await reply).modelName).toBe('add_sub');
    await closed;
  });

  it('ends its streams when it closes, after what they had asked', async () => {
    const watch = t.client.makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      (b: Buffer) => b,
      (b: Buffer) => b,
      Buffer.alloc(0),
    );
    const watched = new Promise<status>((resolve) => watch.on('status', (s) => resolve(s.code)).on('error', () => undefined));
    await new Promise((resolve) => watch.once('data', resolve));
    const stream = t.client.makeBidiStreamRequest(
      '/inference.GRPCInferenceService/ModelStreamInfer',
      (m: ModelInferRequest) => Buffer.from(toBinary(ModelInferRequestSchema, m)),
      (b: Buffer) => fromBinary(ModelStreamInferResponseSchema, b),
    );
    const seen: string[] = [];
    stream.on('data', (r: ModelStreamInferResponse) => seen.push(r.inferResponse!.id));
    const ended = new Promise<status>((resolve) => stream.on('status', (s) => resolve(s.code)).on('error', () => undefined));
    await new Promise<void>((resolve) => {
      t.handler.onInfer = () => resolve();
      stream.write(create(ModelInferRequestSchema, addRequest({ id: 'last' })));
    });
    const closed = t.server.close(10_000);
    expect(await watched).toBe(status.OK);
    echo(t.handler.held[0]!);
    expect(await ended).toBe(status.UNAVAILABLE);
    expect(seen).toEqual(['last']);
    await closed;
  });

  it('tells where it cannot listen', async () => {
    await expect(t.server.listen('256.0.0.1:1')).rejects.toThrow();
  });
});
