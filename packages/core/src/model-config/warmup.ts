/**
 * Judges `model_warmup` against the inputs of the finished model and turns each sample into a plan: which tensors, of
 * which shape, filled with what. A sample that passes here can be built without another question but for its files.
 */
import type { TensorSpec } from '@paceline/protocol';
import type { ModelConfig, ModelWarmup, ModelWarmup_Input } from '@paceline/protocol/model-config';
import { elementSize, type DataType } from '@paceline/tensor';
import { configDataType, configDataTypeName, wireDataType } from './datatype.js';
import type { IssueList } from './issue.js';
import { formatShape } from './shape.js';

/** What fills a tensor of a sample. */
export type WarmupContent =
  | { readonly kind: 'zero' }
  | { readonly kind: 'random' }
  | { readonly kind: 'file'; /** Below the model's `warmup` folder. */ readonly path: string };

export interface WarmupInputPlan {
  readonly name: string;
  readonly datatype: DataType;
  /** Of one row: without the batch dimension. All fixed. */
  readonly rowShape: readonly number[];
  readonly content: WarmupContent;
}

/** One sample that every instance runs before it is ready. */
export interface WarmupPlan {
  /** As written; messages name the sample by it. */
  readonly name: string;
  /** Rows of the batch; 0 where the model does not batch and the tensors have no batch dimension. */
  readonly rows: number;
  /** How often an instance runs it, at least 1. */
  readonly count: number;
  readonly inputs: readonly WarmupInputPlan[];
}

/** More runs than this are a slip of the pen: the model would not become ready. */
const MAX_RUNS = 10_000;
/** Largest sum of a sample's tensors, bytes; BYTES elements count as their length fields. */
const MAX_SAMPLE_BYTES = 512 * 1024 * 1024;

/**
 * @param inputs of the finished model, as clients see them
 * @returns the samples with a `batch_size` above 0; a batch size of 0 skips a sample, as in Triton
 */
export function planWarmup(config: ModelConfig, inputs: readonly TensorSpec[], issues: IssueList): WarmupPlan[] {
  const plans: WarmupPlan[] = [];
  config.modelWarmup.forEach((sample, i) => {
    if (sample.batchSize === 0) return;
    plans.push(new SampleCheck(config, sample, `model_warmup[${i}]`, issues).plan(inputs));
  });
  return plans;
}

class SampleCheck {
  constructor(
    private readonly config: ModelConfig,
    private readonly sample: ModelWarmup,
    private readonly at: string,
    private readonly issues: IssueList,
  ) {}

  plan(specs: readonly TensorSpec[]): WarmupPlan {
    const { sample, at } = this;
    const { maxBatchSize } = this.config;
    const limit = Math.max(1, maxBatchSize);
    if (sample.batchSize > limit) {
      const what = maxBatchSize === 0 ? '1, because the model does not batch' : `max_batch_size ${maxBatchSize}`;
      this.#add(`${at}.batch_size`, `batch_size must be at most ${what}, found ${sample.batchSize}`);
    }
    if (sample.count > MAX_RUNS) this.#add(`${at}.count`, `count must be at most ${MAX_RUNS}, found ${sample.count}`);
    const names = specs.map(({ name }) => name).join(', ');
    for (const name of Object.keys(sample.inputs)) {
      if (specs.some((spec) => spec.name === name)) continue;
      this.#add(`${at}.inputs["${name}"]`, `unexpected input '${name}'`, `the model's inputs are: ${names}`);
    }
    const inputs: WarmupInputPlan[] = [];
    for (const spec of specs) {
      const given = sample.inputs[spec.name];
      if (given !== undefined) inputs.push(this.#input(spec, given));
      else if (!spec.optional) this.#add(at, `input '${spec.name}' is missing`, `add inputs { key: "${spec.name}" value: { ... } }`);
    }
    this.#checkSize(inputs);
    return { name: sample.name, rows: maxBatchSize === 0 ? 0 : sample.batchSize, count: Math.max(1, sample.count), inputs };
  }

  #add(path: string, text: string, hint?: string): void {
    this.issues.add(path, `warmup sample '${this.sample.name}' of model '${this.config.name}': ${text}`, hint);
  }

  #input(spec: TensorSpec, given: ModelWarmup_Input): WarmupInputPlan {
    const at = `${this.at}.inputs["${spec.name}"]`;
    if (wireDataType(given.dataType) !== spec.datatype) {
      const expected = configDataTypeName(configDataType(spec.datatype));
      this.#add(`${at}.data_type`, `input '${spec.name}' has data type ${configDataTypeName(given.dataType)}, the model takes ${expected}`,
        `set data_type: ${expected}`); // prettier-ignore
    }
    const expected = this.config.maxBatchSize > 0 ? spec.shape.slice(1) : spec.shape;
    const dims = given.dims.map(Number);
    const fits = dims.length === expected.length && dims.every((dim, i) => dim >= 0 && (expected[i] === -1 || expected[i] === dim));
    if (!fits) {
      const variable = expected.includes(-1) ? ', with a number for each -1' : '';
      this.#add(`${at}.dims`, `input '${spec.name}' has dims ${formatShape(dims)}, expected ${formatShape(expected)}${variable}`);
    }
    return { name: spec.name, datatype: spec.datatype, rowShape: dims, content: this.#content(spec.name, given, at) };
  }

  #content(name: string, given: ModelWarmup_Input, at: string): WarmupContent {
    const choice = given.inputDataType;
    switch (choice.case) {
      case 'zeroData':
        return { kind: 'zero' };
      case 'randomData':
        return { kind: 'random' };
      case 'inputDataFile':
        return { kind: 'file', path: choice.value };
      case undefined:
        this.#add(at, `input '${name}' must say what it holds`, 'write one of zero_data: true, random_data: true, input_data_file: "..."');
        return { kind: 'zero' };
    }
  }

  #checkSize(inputs: readonly WarmupInputPlan[]): void {
    let bytes = 0;
    for (const { datatype, rowShape } of inputs) {
      bytes += rowShape.reduce((product, dim) => product * dim, this.sample.batchSize) * (elementSize(datatype) || 4);
    }
    if (bytes > MAX_SAMPLE_BYTES) this.#add(this.at, `its tensors have ${bytes} bytes, at most ${MAX_SAMPLE_BYTES} are allowed`);
  }
}
