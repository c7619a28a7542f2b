// Whose fault an error of ONNX Runtime is, read from its text.
import { expect, test } from '@jest/globals';
import { providerError } from './provider-error.js';
import { runtimeError } from './runtime-error.js';

const RUN = 'Non-zero status code returned while running Conv node.';

test.each<[string, 'load' | 'run', string, string]>([
  ['Got invalid dimensions for input: X', 'run', 'INVALID_ARGUMENT', 'model_rejected_input'],
  [`${RUN} Name:'c' Status Message: bad shape`, 'run', 'INVALID_ARGUMENT', 'model_rejected_input'],
  [`${RUN} Name:'c' Status Message: CUDA failure 700: an illegal memory access was encountered`, 'run', 'INTERNAL', 'device_failed'],
  [`${RUN} CUDNN failure 4000: CUDNN_STATUS_INTERNAL_ERROR`, 'run', 'INTERNAL', 'device_failed'],
  [`${RUN} CUBLAS failure 13: the GPU program failed to execute`, 'run', 'INTERNAL', 'device_failed'],
  [`${RUN} Failed to allocate memory for requested buffer of size 8`, 'run', 'RESOURCE_EXHAUSTED', 'out_of_memory'],
  ['CUDA failure 2: out of memory', 'run', 'RESOURCE_EXHAUSTED', 'out_of_memory'],
  ['Load model from /m failed: Protobuf parsing failed', 'load', 'INVALID_ARGUMENT', 'model_load_failed'],
  ['something else', 'run', 'INTERNAL', 'model_failed'],
])('%s during %s', (text, during, code, reason) => {
  expect(runtimeError(new Error(text), during)).toMatchObject({ code, reason });
});

const CUDA = [{ name: 'cuda', deviceId: 1 }] as const;

test('a load that the GPU fails is no fault of the model, one that the model fails is', () => {
  expect(providerError(new Error('CUDA failure 100: no CUDA-capable device is detected'), CUDA)).toMatchObject({
    code: 'UNAVAILABLE',
    reason: 'gpu_unusable',
    message: 'could not load the model with cuda on GPU 1: onnx runtime error 1: CUDA failure 100: no CUDA-capable device is detected',
  });
  expect(providerError(new Error('CUDA failure 2: out of memory'), CUDA)).toMatchObject({
    code: 'RESOURCE_EXHAUSTED',
    reason: 'gpu_unusable',
  });
  expect(providerError(new Error('Load model from /m failed: Protobuf parsing failed'), CUDA).code).toBe('INVALID_ARGUMENT');
});
