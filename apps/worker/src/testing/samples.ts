/** Configurations and tensors for tests, free of any test framework. */
import { create } from '@bufbuild/protobuf';
import { ModelConfigSchema, type ModelConfig } from '@paceline/protocol/model-config';
import type { Tensor } from '@paceline/tensor';

export function configOf(
  model: string,
  options: { maxBatchSize?: number; instances?: number; parameters?: Readonly<Record<string, string>> } = {},
): ModelConfig {
  return create(ModelConfigSchema, {
    name: model,
    backend: 'onnxruntime',
    maxBatchSize: options.maxBatchSize ?? 8,
    instanceGroup: [{ name: `${model}_0`, count: options.instances ?? 1, kind: 2 }],
    parameters: Object.fromEntries(Object.entries(options.parameters ?? {}).map(([k, stringValue]) => [k, { stringValue }])),
  });
}

export function fp32(name: string, shape: readonly number[], values: ArrayLike<number>): Tensor {
  return { name, datatype: 'FP32', shape, data: new Uint8Array(Float32Array.from(values).buffer) };
}

export function int64(name: string, shape: readonly number[], values: readonly bigint[]): Tensor {
  return { name, datatype: 'INT64', shape, data: new Uint8Array(BigInt64Array.from(values).buffer) };
}

export function bytes(name: string, shape: readonly number[], values: readonly (string | Uint8Array)[]): Tensor {
  const parts = values.flatMap((v) => {
    const data = typeof v === 'string' ? Buffer.from(v) : v;
    const length = Buffer.alloc(4);
    length.writeUInt32LE(data.byteLength);
    return [length, data];
  });
  return { name, datatype: 'BYTES', shape, data: Buffer.concat(parts) };
}

export function readFp32(tensor: Tensor | undefined): Float32Array {
  return new Float32Array(Uint8Array.from(tensor!.data).buffer);
}
