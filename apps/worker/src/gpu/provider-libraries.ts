/**
 * Where ONNX Runtime's libraries lie, and which of the providers for NVIDIA GPUs lie beside them. They are not part of the
 * npm package: an image for GPUs adds them.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export type GpuProvider = 'cuda' | 'tensorrt';

/** File name of a provider. */
export const providerFile = (provider: GpuProvider): string => `libonnxruntime_providers_${provider}.so`;

/** The folder of `libonnxruntime.so.1`. */
export function runtimeFolder(): string {
  const entry = createRequire(import.meta.url).resolve('onnxruntime-node');
  return join(dirname(entry), '..', 'bin', 'napi-v6', process.platform, process.arch);
}

/** @param folder see {@link runtimeFolder} */
export function hasProvider(provider: GpuProvider, folder: string): boolean {
  return existsSync(join(folder, providerFile(provider)));
}
