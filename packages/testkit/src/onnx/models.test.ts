// The test models run in ONNX Runtime and give the answers their comments promise.
import { describe, expect, test } from '@jest/globals';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { addSubModel, gatherModel, identityModel, matmulModel, optionalInputModel, scaleModel, slowModel } from './models.js';

const session = (model: Uint8Array): Promise<InferenceSession> => InferenceSession.create(model, { logSeverityLevel: 3 });
const f32 = (values: number[], dims: number[]): Tensor => new Tensor('float32', Float32Array.from(values), dims);

describe('test models', () => {
  test('identity keeps type and shape, symbolic dimensions included', async () => {
    const s = await session(identityModel({ datatype: 'INT32', dims: [-1, 2] }));
    const out = await s.run({ INPUT0: new Tensor('int32', Int32Array.of(1, 2, 3, 4), [1, 2, 2]) });
    expect(out['OUTPUT0']?.dims).toEqual([1, 2, 2]);
    expect(Array.from(out['OUTPUT0']?.data as Int32Array)).toEqual([1, 2, 3, 4]);
  });

  test('add_sub', async () => {
    const s = await session(addSubModel({ datatype: 'FP32', dims: [2] }));
    const out = await s.run({ INPUT0: f32([5, 7], [1, 2]), INPUT1: f32([2, 3], [1, 2]) });
    expect(Array.from(out['OUTPUT0']?.data as Float32Array)).toEqual([7, 10]);
    expect(Array.from(out['OUTPUT1']?.data as Float32Array)).toEqual([3, 4]);
  });

  test('scale and matmul', async () => {
    const scale = await session(scaleModel({ dims: [2], factor: 3 }));
    expect(Array.from((await scale.run({ INPUT0: f32([1, 2], [1, 2]) }))['OUTPUT0']?.data as Float32Array)).toEqual([3, 6]);
    const matmul = await session(matmulModel({ rows: 2, columns: 1, weights: Float32Array.of(10, 1) }));
    expect(Array.from((await matmul.run({ INPUT0: f32([4, 2], [1, 2]) }))['OUTPUT0']?.data as Float32Array)).toEqual([42]);
  });

  test('gather fails on an index outside its table', async () => {
    const s = await session(gatherModel());
    const index = (i: bigint): Tensor => new Tensor('int64', BigInt64Array.of(i), [1, 1]);
    expect(Array.from((await s.run({ INPUT0: index(2n) }))['OUTPUT0']?.data as Float32Array)).toEqual([30]);
    await expect(s.run({ INPUT0: index(4n) })).rejects.toThrow(/pick/);
  });

  test('slow runs its loop and returns its input', async () => {
    const s = await session(slowModel({ size: 8 }));
    const out = await s.run({ INPUT0: f32([7], [1, 1]), ITERS: new Tensor('int64', BigInt64Array.of(3n), [1, 1]) });
    expect(Array.from(out['OUTPUT0']?.data as Float32Array)).toEqual([7]);
  });

  test('an optional input falls back to its constant', async () => {
    const s = await session(optionalInputModel({ dims: [2], fallback: 100 }));
    expect(Array.from((await s.run({ INPUT0: f32([1, 2], [2]) }))['OUTPUT0']?.data as Float32Array)).toEqual([101, 102]);
  });
});
