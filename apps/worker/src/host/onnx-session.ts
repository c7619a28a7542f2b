/** ONNX Runtime as a host's runtime: protocol tensors become its typed arrays and strings, its errors become ours. */
import type { DataType } from '@paceline/tensor';
import type { LoadMessage } from '../host-protocol/messages.js';
import { decodeStrings, encodeStrings } from './bytes.js';
import { ELEMENT_TYPES } from './element-types.js';
import { HostError } from './host-error.js';
import type { HostRuntime, HostSession } from './host-runtime.js';
import { openOnnxRuntime, type OnnxRuntime, type OrtSession, type OrtTensor, type OrtTensors } from './onnx-runtime.js';
import { providerError } from './provider-error.js';
import { runtimeError } from './runtime-error.js';

/** @param api 'session' forces the public API */
export function openOnnxHost(api: 'binding' | 'session'): HostRuntime<OrtTensor> {
  const runtime = openOnnxRuntime(api);
  return { api: runtime.api, load: (message) => load(runtime, message) };
}

async function load(runtime: OnnxRuntime, message: LoadMessage): Promise<HostSession<OrtTensor>> {
  if (message.backend !== 'onnxruntime') throw new HostError('INTERNAL', 'wrong_backend', `ONNX Runtime cannot load '${message.backend}'`);
  let session: OrtSession;
  try {
    session = await runtime.load(message.modelPath, message.options);
  } catch (error) {
    const { executionProviders } = message.options;
    throw executionProviders === undefined ? runtimeError(error, 'load') : providerError(error, executionProviders);
  }
  try {
    checkTensors('input', message.inputs, session.inputTypes);
    checkTensors('output', message.outputs, session.outputTypes);
    for (const name of session.inputTypes.keys()) {
      if (!message.inputs.some((i) => i.name === name)) {
        throw new HostError(
          'INVALID_ARGUMENT',
          'model_mismatch',
          `the model needs input '${name}', which the model configuration does not name`,
        );
      }
    }
  } catch (error) {
    await session.dispose();
    throw error;
  }
  return new OnnxSession(runtime, session);
}

class OnnxSession implements HostSession<OrtTensor> {
  constructor(
    private readonly runtime: OnnxRuntime,
    private readonly session: OrtSession,
  ) {}

  feed(name: string, datatype: DataType, shape: readonly number[], data: Buffer): OrtTensor {
    const type = ELEMENT_TYPES[datatype]!;
    let count = 1;
    for (const dim of shape) count *= dim;
    if (!type.view) return this.runtime.tensor(type.ortType, decodeStrings(name, data, count), shape);
    if (data.byteLength !== count * type.bytes) {
      throw new HostError(
        'INVALID_ARGUMENT',
        'input_size_mismatch',
        `expected ${count * type.bytes} bytes for input '${name}', got ${data.byteLength}`,
      );
    }
    return this.runtime.tensor(type.ortType, type.view(data.buffer as ArrayBuffer, data.byteOffset, count), shape);
  }

  run(feeds: OrtTensors, outputs: readonly string[]): OrtTensors | Promise<OrtTensors> {
    let done: OrtTensors | Promise<OrtTensors>;
    try {
      done = this.session.run(feeds, outputs);
    } catch (error) {
      throw runtimeError(error, 'run');
    }
    if (!(done instanceof Promise)) return done;
    return done.catch((error: unknown) => {
      throw runtimeError(error, 'run');
    });
  }

  shapeOf(tensor: OrtTensor): readonly number[] {
    return tensor.dims;
  }

  bytesOf({ data }: OrtTensor): Uint8Array {
    return Array.isArray(data) ? encodeStrings(data) : new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  }

  dispose(): void | Promise<void> {
    return this.session.dispose();
  }
}

function checkTensors(
  kind: 'input' | 'output',
  specs: readonly { name: string; datatype: DataType; optional?: boolean }[],
  types: ReadonlyMap<string, string>,
): void {
  for (const spec of specs) {
    const expected = ELEMENT_TYPES[spec.datatype]?.ortType;
    if (!expected)
      throw new HostError(
        'INVALID_ARGUMENT',
        'unsupported_datatype',
        `${kind} '${spec.name}' has data type ${spec.datatype}, which ONNX Runtime does not serve here`,
      );
    const found = types.get(spec.name);
    // An optional input is a constant that may be overridden; the runtime does not list it.
    if (found === undefined && spec.optional) continue;
    if (found === undefined) {
      throw new HostError(
        'INVALID_ARGUMENT',
        'model_mismatch',
        `the model configuration names ${kind} '${spec.name}', the model has ${[...types.keys()].map((n) => `'${n}'`).join(', ') || 'none'}`,
      );
    }
    if (found !== expected) {
      throw new HostError(
        'INVALID_ARGUMENT',
        'model_mismatch',
        `${kind} '${spec.name}' has data type ${spec.datatype} (${expected}) in the model configuration, but ${found} in the model`,
      );
    }
  }
}
