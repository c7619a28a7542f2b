/**
 * Runs the warmup samples of a model on one instance before it takes requests, and looks at what comes back: a model
 * that answers its own samples with something else than it declares would answer clients so, too.
 */
import { ServingError, toServingError } from '@paceline/protocol';
import type { Tensor } from '@paceline/tensor';
import type { Batch, WarmupSample } from '@paceline/worker-rpc';
import { FRAME } from '../host-protocol/frames.js';
import type { HostProcess } from '../hosts/host-process.js';
import type { CopyCounter } from '../infer/copy-counter.js';
import { executeFrame, gather } from '../infer/gather.js';
import { readOutputs, scatter } from '../infer/scatter.js';
import { failure } from './load-into.js';
import type { LoadedModel } from './loaded-model.js';

/** Elements of an output that are looked at: one that overflows does so soon, and looking at all of a large one takes long. */
const MOST_LOOKED_AT = 1024 * 1024;

export interface WarmUpOptions {
  /** Of one run: the host is killed when it takes longer. */
  readonly limitUs: number;
  readonly copies: CopyCounter;
}

/**
 * Resolves when each sample has run as often as it says.
 * @param id of the instance in its host, which has loaded the model
 * @throws ServingError `failed to run warmup sample '<name>': …` for the first run that failed or gave a wrong answer
 */
export async function warmUp(host: HostProcess, id: number, model: LoadedModel, options: WarmUpOptions): Promise<void> {
  for (const sample of model.spec.warmup ?? []) {
    try {
      for (let run = 0; run < sample.count; run++) await runOnce(host, id, model, sample, options);
    } catch (thrown) {
      const error = toServingError(thrown);
      throw new ServingError(error.code, `failed to run warmup sample '${sample.name}': ${error.message}`, {
        reason: 'warmup_failed',
        cause: error,
      });
    }
  }
}

function batchOf(model: LoadedModel, { rows, inputs }: WarmupSample): Batch {
  const { model: name, version, generation, outputs } = model.spec;
  const ref = { gateway: '', number: 0 };
  const member = { ref, rows, inputs, outputs: outputs.map((output) => output.name), queueNs: 0 };
  return { id: 0, model: name, version, generation, instance: '', rows, members: [member] };
}

function runOnce(host: HostProcess, id: number, model: LoadedModel, sample: WarmupSample, options: WarmUpOptions): Promise<void> {
  const batch = batchOf(model, sample);
  const gathered = gather(batch, model.tensors);
  const sequence = host.nextSequence();
  const slot = host.takeSlot();
  const frame = executeFrame(gathered, { instance: id, sequence, slot, flags: host.startFlag, shared: host.shared });
  options.copies.inBytes += gathered.totalBytes;
  return new Promise<void>((resolve, reject) => {
    const onAnswer = (answer: Buffer): void => {
      try {
        if (answer.readUInt32LE(4) !== FRAME.result) throw failure(answer);
        const [outputs = []] = scatter(batch, readOutputs(answer, host.shared), model.tensors);
        for (const output of outputs) checkOutput(output, sample.rows, model);
        resolve();
      } catch (error) {
        reject(toServingError(error));
      }
    };
    const onGone = (begun: boolean, reason: string): void => {
      if (begun) model.isolated = true;
      reject(new ServingError('UNAVAILABLE', reason, { reason: 'instance_host_lost' }));
    };
    host.send(frame, sequence, { limitUs: options.limitUs, what: `warmup of model '${batch.model}'`, onAnswer, onGone }, slot);
  });
}

/** The data type was compared when the model was loaded. */
function checkOutput(output: Tensor, rows: number, model: LoadedModel): void {
  const declared = model.spec.outputs.find(({ name }) => name === output.name)?.shape ?? [];
  const expected = model.tensors.batches ? [rows, ...declared.slice(1)] : declared;
  const fits = output.shape.length === expected.length && expected.every((dim, i) => dim === -1 || dim === output.shape[i]);
  if (!fits) {
    throw new ServingError('INVALID_ARGUMENT',
      `output '${output.name}' has shape [${output.shape.join(',')}], the model configuration says [${expected.join(',')}]`,
      { reason: 'warmup_shape' }); // prettier-ignore
  }
  const at = firstNotFinite(output);
  if (at !== undefined) {
    throw new ServingError('INVALID_ARGUMENT', `element ${at} of output '${output.name}' is not a finite number`, {
      reason: 'warmup_not_finite',
    });
  }
}

/** By data type: bytes of an element, and the bits of the exponent in its upper two bytes; all set = infinite or not a number. */
const EXPONENTS = {
  FP16: { bytes: 2, mask: 0x7c00 },
  BF16: { bytes: 2, mask: 0x7f80 },
  FP32: { bytes: 4, mask: 0x7f80 },
  FP64: { bytes: 8, mask: 0x7ff0 },
} as const;

function firstNotFinite({ datatype, data }: Tensor): number | undefined {
  if (!Object.hasOwn(EXPONENTS, datatype)) return undefined;
  const { bytes, mask } = EXPONENTS[datatype as keyof typeof EXPONENTS];
  const count = Math.min(MOST_LOOKED_AT, Math.floor(data.byteLength / bytes));
  for (let i = 0, at = bytes - 2; i < count; i++, at += bytes) {
    if (((data[at]! | (data[at + 1]! << 8)) & mask) === mask) return i;
  }
  return undefined;
}
