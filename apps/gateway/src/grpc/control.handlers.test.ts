import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Metadata, status } from '@grpc/grpc-js';
import { failure, GrpcHarness } from '../testing/grpc-harness.js';

let t: GrpcHarness;
beforeEach(async () => {
  t = new GrpcHarness();
  await t.start();
});
afterEach(() => t.stop());

describe('control', () => {
  it('describes server and models', async () => {
    expect((await t.call('serverLive', {})).live).toBe(true);
    expect((await t.call('serverReady', {})).ready).toBe(true);
    t.ready = false;
    expect((await t.call('serverReady', {})).ready).toBe(false);
    expect(await t.call('serverMetadata', {})).toMatchObject({ name: 'paceline', version: '1.2.3', extensions: ['statistics'] });
    expect((await t.call('modelReady', { name: 'add_sub' })).ready).toBe(true);
    expect((await t.call('modelReady', { name: 'nosuch' })).ready).toBe(false);
    t.healthy = false;
    expect((await t.call('modelReady', { name: 'add_sub' })).ready).toBe(false);
    const metadata = await t.call('modelMetadata', { name: 'add_sub' });
    expect(metadata).toMatchObject({ name: 'add_sub', versions: ['1'] });
    expect(metadata.inputs.map((i) => [i.name, i.datatype, i.shape])).toEqual([
      ['INPUT0', 'INT32', [-1n, 16n]],
      ['INPUT1', 'INT32', [-1n, 16n]],
    ]);
    expect(await failure(t.call('modelMetadata', { name: 'nosuch' }))).toMatchObject({
      code: status.NOT_FOUND,
      details: "Request for unknown model: 'nosuch' is not found",
    });
    expect((await t.call('modelConfig', { name: 'add_sub' })).config).toMatchObject({ name: 'add_sub', maxBatchSize: 8 });
  });

  it('reads and changes the log settings', async () => {
    const asMap = async (settings: Parameters<typeof t.call<'logSettings'>>[1]['settings'] = {}): Promise<Record<string, unknown>> => {
      const answer = await t.call('logSettings', { settings });
      return Object.fromEntries(Object.entries(answer.settings).map(([name, { parameterChoice }]) => [name, parameterChoice.value]));
    };
    const silent = { log_file: '', log_info: false, log_warning: false, log_error: false, log_verbose_level: 0, log_format: 'default' };
    expect(await asMap()).toEqual(silent);
    const changed = { ...silent, log_info: true, log_verbose_level: 1 };
    expect(
      await asMap({
        log_info: { parameterChoice: { case: 'boolParam', value: true } },
        log_verbose_level: { parameterChoice: { case: 'uint32Param', value: 1 } },
      }),
    ).toEqual(changed);
    for (const [settings, code, details] of [
      [
        { log_verbose_level: { parameterChoice: { case: 'stringParam', value: '1' } } },
        'INVALID_ARGUMENT',
        "expect int32 for 'log_verbose_level'",
      ],
      [{ log_error: {} }, 'INVALID_ARGUMENT', "expect boolean for 'log_error'"],
      [
        { log_file: { parameterChoice: { case: 'stringParam', value: 'x' } } },
        'UNIMPLEMENTED',
        'log file location can not be updated through network protocol',
      ],
    ] as const)
      expect(await failure(t.call('logSettings', { settings }))).toMatchObject({ code: status[code], details });
    expect(await asMap()).toEqual(changed);
    const metadata = new Metadata();
    metadata.set('x-forwarded-for', '10.0.0.7');
    expect((await failure(t.call('logSettings', {}, metadata))).code).toBe(status.PERMISSION_DENIED);
  });

  it('reports statistics', async () => {
    const all = await t.call('modelStatistics', {});
    expect(all.modelStats.map((s) => s.name)).toEqual(['add_sub', 'identity', 'repeat']);
    expect(all.modelStats[0]!.inferenceStats!.cacheMiss).toMatchObject({ count: 0n, ns: 0n });
    expect(await failure(t.call('modelStatistics', { name: 'nosuch' }))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "requested model 'nosuch' is not available",
    });
  });

  it('lists, t.loads and unloads', async () => {
    expect((await t.call('repositoryIndex', {})).models.map(({ name, version, state, reason }) => [name, version, state, reason])).toEqual([
      ['add_sub', '1', 'READY', ''],
      ['broken', '1', 'UNAVAILABLE', 'no file'],
    ]);
    expect(await failure(t.call('repositoryIndex', { repositoryName: 'x' }))).toMatchObject({
      code: status.UNIMPLEMENTED,
      details: "'repository_name' specification is not supported",
    });
    await t.call('repositoryModelLoad', {
      modelName: 'm',
      parameters: {
        config: { parameterChoice: { case: 'stringParam', value: '{}' } },
        'file:1/model.onnx': { parameterChoice: { case: 'bytesParam', value: new Uint8Array([1, 2]) } },
      },
    });
    expect(t.loads).toEqual([['m', { config: '{}', 'file:1/model.onnx': expect.anything() }]]);
    expect([...(t.loads[0]![1]['file:1/model.onnx'] as Uint8Array)]).toEqual([1, 2]);
    await t.call('repositoryModelUnload', {
      modelName: 'm',
      parameters: { unload_dependents: { parameterChoice: { case: 'boolParam', value: true } } },
    });
    expect(t.unloads).toEqual([['m', true]]);
    const bytes = { parameterChoice: { case: 'bytesParam' as const, value: new Uint8Array(1) } };
    expect(await failure(t.call('repositoryModelLoad', { modelName: 'm', parameters: { config: bytes } }))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "invalid value type for load parameter 'config', expected string_param.",
    });
    expect(await failure(t.call('repositoryModelLoad', { modelName: 'm', parameters: { foo: bytes } }))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "unrecognized load parameter 'foo'.",
    });
  });

  it('keeps callers behind a proxy from changing models', async () => {
    const metadata = new Metadata();
    metadata.set('x-forwarded-for', '10.0.0.7');
    for (const name of ['repositoryModelLoad', 'repositoryModelUnload'] as const) {
      expect(await failure(t.call(name, { modelName: 'm' }, metadata))).toMatchObject({
        code: status.PERMISSION_DENIED,
        details: expect.stringContaining("'x-forwarded-for'"),
      });
    }
    expect([t.loads, t.unloads]).toEqual([[], []]);
  });

  it('says which methods it does not serve', async () => {
    for (const name of ['traceSetting', 'systemSharedMemoryStatus', 'cudaSharedMemoryRegister'] as const) {
      expect(await failure(t.call(name, {}))).toMatchObject({
        code: status.UNIMPLEMENTED,
        details: expect.stringMatching(/is not served by this server$/),
      });
    }
    expect((await failure(t.bytesCall('/inference.GRPCInferenceService/NoSuchMethod', new Uint8Array(0)))).code).toBe(status.UNIMPLEMENTED);
    expect(await failure(t.bytesCall('/inference.GRPCInferenceService/ServerLive', new Uint8Array([0xff])))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: 'Unable to parse request',
    });
  });
});
