/**
 * Why a provider for GPUs could not be had. ONNX Runtime says no more than that it failed to load a library, so the
 * library is opened once more by itself: the loader's answer names what is missing, e.g. `libcublasLt.so.13`. This is a
 * fault of the machine and not of the model, so another worker may well load it.
 */
import { join } from 'node:path';
import { providerFile, runtimeFolder, type GpuProvider } from '../gpu/provider-libraries.js';
import { HostError } from './host-error.js';
import { isDeviceFault, runtimeError } from './runtime-error.js';

const NO_PROVIDER = /AppendExecutionProvider|Failed to load shared library/i;

/** @param providers that the load asked for, on GPU `deviceId` */
export function providerError(error: unknown, providers: readonly { readonly name: GpuProvider; readonly deviceId: number }[]): HostError {
  const told = runtimeError(error, 'load');
  const noProvider = NO_PROVIDER.test(told.message);
  if (!noProvider && !isDeviceFault(told.message)) return told;
  const asked = `${providers.map(({ name }) => name).join(' and ')} on GPU ${providers[0]?.deviceId}`;
  const found = noProvider ? providers.flatMap(({ name }) => loaderText(name) ?? []) : [];
  const why = found.length > 0 ? `${told.message} (${found.join('; ')})` : told.message;
  const advice = noProvider ? `; ${adviceOn(found)}` : '';
  return new HostError(
    told.code === 'RESOURCE_EXHAUSTED' ? told.code : 'UNAVAILABLE',
    'gpu_unusable',
    `could not load the model with ${asked}: ${why}${advice}`,
  );
}

function adviceOn(found: readonly string[]): string {
  // TensorRT itself is in no image.
  if (found.some((text) => /libnv(infer|onnx)/.test(text))) return 'install TensorRT, or take the accelerator out to run with CUDA alone';
  return 'the image for GPUs has the libraries of CUDA, kind: KIND_CPU needs none';
}

/** What the system's loader says against the provider; undefined = nothing. */
function loaderText(provider: GpuProvider): string | undefined {
  const folder = runtimeFolder();
  try {
    process.dlopen({ exports: {} }, join(folder, providerFile(provider)));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // It loads, and is no addon of Node: the fault is elsewhere.
    return /did not self-register/.test(text) ? undefined : text.replaceAll(join(folder, '/'), '');
  }
  return undefined;
}
