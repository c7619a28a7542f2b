/**
 * ONNX Runtime's errors as ours. Its JavaScript API hands over only a text, so whose fault an error is has to be read
 * from it: a kernel that refuses its operands has been fed data that the model cannot take, which is the client's
 * fault; memory that could not be had, and everything else, is ours. The number is the runtime's own status code.
 */
import { DEVICE_FAILED, HostError } from './host-error.js';

const OUT_OF_MEMORY = /failed to allocate memory|bad_alloc|out of memory|Array buffer allocation failed/i;
const INVALID =
  /invalid dimensions|invalid rank|unexpected input data type|non-zero status code returned while running|missing input|invalid argument/i;

/** The device failed, or a library that drives it: no data of a client can be blamed. */
const DEVICE_FAULT = /\b(CUDA|CUDNN|CUBLAS|CUFFT|CURAND|NCCL)\w* (failure|error)|TensorRT EP/i;

export function isDeviceFault(text: string): boolean {
  return DEVICE_FAULT.test(text);
}

/** @param during where it happened: a model that does not load is never a request's fault */
export function runtimeError(error: unknown, during: 'load' | 'run'): HostError {
  if (error instanceof HostError) return error;
  const text = (error instanceof Error ? error.message : String(error)).trim().replaceAll(/\s*\n\s*/g, ' ');
  if (OUT_OF_MEMORY.test(text)) return new HostError('RESOURCE_EXHAUSTED', 'out_of_memory', `onnx runtime error 1: ${text}`);
  if (during === 'load') return new HostError('INVALID_ARGUMENT', 'model_load_failed', `onnx runtime error 1: ${text}`);
  if (isDeviceFault(text)) return new HostError('INTERNAL', DEVICE_FAILED, `onnx runtime error 1: ${text}`);
  if (INVALID.test(text)) return new HostError('INVALID_ARGUMENT', 'model_rejected_input', `onnx runtime error 2: ${text}`);
  return new HostError('INTERNAL', 'model_failed', `onnx runtime error 1: ${text}`);
}
