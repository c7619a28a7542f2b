/**
 * The two ways into onnxruntime-node. `binding` calls the native session directly and synchronously (about half the
 * cost of a small run); it is not public API, so the version is pinned and `session`, the public one, stands ready where
 * the binding has changed. Both are tested.
 */
import { createRequire } from 'node:module';
import type { SessionOptions } from '../host-protocol/messages.js';

// Node 24 has Float16Array, which this version takes for float16 tensors and then cannot read. Without it, it takes the
// bits in a Uint16Array. This must come before the first tensor.
delete (globalThis as { Float16Array?: unknown }).Float16Array;

export type TensorData =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | BigUint64Array
  | BigInt64Array
  | Float32Array
  | Float64Array
  | string[];

export interface OrtTensor {
  readonly type: string;
  readonly data: TensorData;
  readonly dims: readonly number[];
}

export type OrtTensors = Record<string, OrtTensor>;

export interface OrtSession {
  readonly inputTypes: ReadonlyMap<string, string>;
  readonly outputTypes: ReadonlyMap<string, string>;
  /** @param outputs names of the outputs to compute */
  run(feeds: OrtTensors, outputs: readonly string[]): OrtTensors | Promise<OrtTensors>;
  dispose(): void | Promise<void>;
}

export interface OnnxRuntime {
  readonly api: 'binding' | 'session';
  tensor(type: string, data: TensorData, dims: readonly number[]): OrtTensor;
  /** @throws the runtime's error when the file is missing, broken or uses what the runtime does not know */
  load(path: string, options: SessionOptions): OrtSession | Promise<OrtSession>;
}

const require = createRequire(import.meta.url);

/** @param api 'session' forces the public API */
export function openOnnxRuntime(api: 'binding' | 'session'): OnnxRuntime {
  if (api === 'binding') {
    const runtime = openBinding();
    if (runtime) return runtime;
  }
  return openPublic();
}

/** The runtime's numbers of element types, as its binding reports them. */
const TYPE_NAMES: Readonly<Record<number, string>> = {
  1: 'float32',
  2: 'uint8',
  3: 'int8',
  4: 'uint16',
  5: 'int16',
  6: 'int32',
  7: 'int64',
  8: 'string',
  9: 'bool',
  10: 'float16',
  11: 'float64',
  12: 'uint32',
  13: 'uint64',
};

/** What the binding reads of a tensor, and what it makes for an output. */
class BindingTensor implements OrtTensor {
  readonly location = 'cpu';
  constructor(
    readonly type: string,
    readonly data: TensorData,
    readonly dims: readonly number[],
  ) {}
}

interface BindingMetadata {
  readonly name: string;
  readonly isTensor: boolean;
  readonly type: number;
}

interface BindingSession {
  loadModel(path: string, options: object): void;
  readonly inputMetadata: readonly BindingMetadata[];
  readonly outputMetadata: readonly BindingMetadata[];
  run(feeds: OrtTensors, fetches: Record<string, null>, options: object): OrtTensors;
  dispose(): void;
}

interface Binding {
  readonly InferenceSession: new () => BindingSession;
  initOrtOnce(logLevel: number, tensor: typeof BindingTensor, isMainThread: boolean): void;
}

/** What goes wrong in a session is thrown; the runtime need not print it as well. */
const LOG_FATAL = 4;

function openBinding(): OnnxRuntime | undefined {
  let binding: Binding;
  try {
    binding = (require('onnxruntime-node/dist/binding.js') as { binding: Binding }).binding;
    binding.initOrtOnce(LOG_FATAL, BindingTensor, true);
  } catch {
    return undefined;
  }
  return {
    api: 'binding',
    tensor: (type, data, dims) => new BindingTensor(type, data, dims),
    load(path, options) {
      const session = new binding.InferenceSession();
      session.loadModel(path, options);
      const noOptions = {};
      return {
        inputTypes: bindingTypes(session.inputMetadata),
        outputTypes: bindingTypes(session.outputMetadata),
        run(feeds, outputs) {
          const fetches: Record<string, null> = {};
          for (const name of outputs) fetches[name] = null;
          return session.run(feeds, fetches, noOptions);
        },
        dispose: () => session.dispose(),
      };
    },
  };
}

function bindingTypes(metadata: readonly BindingMetadata[]): Map<string, string> {
  return new Map(metadata.map((m) => [m.name, m.isTensor ? (TYPE_NAMES[m.type] ?? `type ${m.type}`) : 'no tensor']));
}

function openPublic(): OnnxRuntime {
  const ort = require('onnxruntime-node') as typeof import('onnxruntime-node');
  return {
    api: 'session',
    tensor: (type, data, dims) => new ort.Tensor(type as 'float32', data as Float32Array, dims),
    async load(path, options) {
      const session = await ort.InferenceSession.create(path, { ...options, logSeverityLevel: LOG_FATAL });
      const types = (all: readonly { name: string; isTensor: boolean; type?: string }[]) =>
        new Map(all.map((m) => [m.name, m.isTensor ? (m.type ?? 'unknown') : 'no tensor']));
      return {
        inputTypes: types(session.inputMetadata),
        outputTypes: types(session.outputMetadata),
        run: async (feeds, outputs) => await session.run(feeds as never, outputs),
        dispose: () => session.release(),
      };
    },
  };
}
