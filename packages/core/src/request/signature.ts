/**
 * What a model version expects of a request, prepared once per load so that checking a request costs a few microseconds.
 * Texts and order of the checks are Triton's, including its habit of looking at inputs from the last to the first;
 * invariant: a request that passes can be gathered into a batch without another look at it.
 */
import type { InferRequest, ServedModel, ServingError, TensorSpec } from '@paceline/protocol';
import { elementSize, type Tensor } from '@paceline/tensor';
import { checkBytesInput, checkByteSize, checkShape } from './tensor-checks.js';
import { batchDiffers, batchTooBig, inputCount, noBatchDimension, refuse, unprefixed } from './texts.js';

/** The parts of an envelope that a request decides. */
export interface ValidatedRequest {
  /** Rows along the batch dimension; 1 for a model that does not batch. */
  readonly rows: number;
  /** Equal for requests that may share a batch; "" where all may. */
  readonly shapeKey: string;
  /** In the order of the configuration; optional inputs that were left out are missing. */
  readonly inputs: readonly Tensor[];
  /** Distinct output names in the order of the configuration, which is also Triton's order of answering. */
  readonly outputs: readonly string[];
}

export interface Signature {
  /** @throws ServingError INVALID_ARGUMENT naming the input or output, what was expected and what was found */
  validate(request: InferRequest): ValidatedRequest;
}

export interface InputRule {
  readonly spec: TensorSpec;
  /** Bytes per element; 0 for BYTES. */
  readonly elementBytes: number;
  readonly batches: boolean;
  /** Index of the first dimension behind the batch dimension. */
  readonly firstDim: number;
  /** Elements of one row where no dimension is variable, else -1. */
  readonly rowElements: number;
}

function ruleOf(spec: TensorSpec, batches: boolean): InputRule {
  const firstDim = batches ? 1 : 0;
  const row = spec.shape.slice(firstDim);
  const fixed = row.every((dim) => dim >= 0);
  return { spec, elementBytes: elementSize(spec.datatype), batches, firstDim, rowElements: fixed ? row.reduce((a, b) => a * b, 1) : -1 };
}

class CompiledSignature implements Signature {
  readonly #model: string;
  readonly #maxBatchSize: number;
  readonly #rules: readonly InputRule[];
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #required: number;
  readonly #allOutputs: readonly string[];
  readonly #outputNames: ReadonlySet<string>;
  /** Whether two requests of this model can differ in shape or in the set of inputs. */
  readonly #variable: boolean;

  constructor(served: ServedModel) {
    this.#model = served.name;
    this.#maxBatchSize = served.maxBatchSize;
    this.#rules = served.inputs.map((spec) => ruleOf(spec, served.maxBatchSize > 0));
    this.#indexOf = new Map(served.inputs.map((spec, i) => [spec.name, i]));
    this.#required = served.inputs.filter((spec) => !spec.optional).length;
    this.#allOutputs = served.outputs.map((spec) => spec.name);
    this.#outputNames = new Set(this.#allOutputs);
    this.#variable = served.inputs.some((spec) => spec.optional) || this.#rules.some((rule) => rule.rowElements < 0);
  }

  validate(request: InferRequest): ValidatedRequest {
    const outputs = this.#outputs(request);
    const inputs = this.#inConfigOrder(request);
    const rows = this.#rows(request);
    const { inputs: given } = request;
    for (let i = given.length - 1; i >= 0; i--) {
      const input = given[i] as Tensor;
      const rule = this.#rules[this.#indexOf.get(input.name) as number] as InputRule;
      this.#checkInput(request, rule, input, rows);
    }
    return { rows: this.#maxBatchSize > 0 ? rows : 1, shapeKey: this.#variable ? this.#shapeKey(inputs) : '', inputs, outputs };
  }

  #outputs(request: InferRequest): readonly string[] {
    const wanted = request.outputs;
    if (wanted === undefined || wanted.length === 0) return this.#allOutputs;
    const names = new Set<string>();
    for (const { name } of wanted) {
      if (!this.#outputNames.has(name))
        throw unprefixed(`unexpected inference output '${name}' for model '${this.#model}'`, 'output_unknown');
      names.add(name);
    }
    return names.size === this.#allOutputs.length ? this.#allOutputs : this.#allOutputs.filter((name) => names.has(name));
  }

  /** Checks count, duplicates and names. */
  #inConfigOrder(request: InferRequest): readonly Tensor[] {
    const given = request.inputs;
    const count = this.#rules.length;
    let inOrder = given.length === count;
    for (let i = 0; inOrder && i < count; i++) inOrder = (given[i] as Tensor).name === (this.#rules[i] as InputRule).spec.name;
    if (inOrder) return given;

    const seen = new Set<string>();
    for (const { name } of given) {
      if (seen.has(name)) throw refuse(request, `input '${name}' already exists in request`, 'input_duplicate');
      seen.add(name);
    }
    if (given.length > count || given.length < this.#required) throw this.#countError(request, seen);
    for (let i = given.length - 1; i >= 0; i--) {
      const { name } = given[i] as Tensor;
      if (!this.#indexOf.has(name)) throw unprefixed(`unexpected inference input '${name}' for model '${this.#model}'`, 'input_unknown');
    }
    const slots = new Array<Tensor | undefined>(count).fill(undefined);
    for (const input of given) slots[this.#indexOf.get(input.name) as number] = input;
    if (slots.some((slot, i) => slot === undefined && !this.#rules[i]?.spec.optional)) throw this.#countError(request, seen);
    return slots.filter((slot) => slot !== undefined);
  }

  #countError(request: InferRequest, given: ReadonlySet<string>): ServingError {
    const missing = this.#rules.filter(({ spec }) => !spec.optional && !given.has(spec.name)).map(({ spec }) => spec.name);
    return inputCount(request, this.#model, this.#required, this.#rules.length, [...given].reverse(), missing);
  }

  /** The common batch dimension; 0 where a batching model was sent zero rows, or the model does not batch. */
  #rows(request: InferRequest): number {
    if (this.#maxBatchSize === 0) return 0;
    const given = request.inputs;
    let rows = 0;
    for (let i = given.length - 1; i >= 0; i--) {
      const { name, shape } = given[i] as Tensor;
      if (shape.length === 0) throw noBatchDimension(request, name, this.#model);
      if (rows === 0) rows = shape[0] as number;
      else if (shape[0] !== rows) throw batchDiffers(request, name, this.#model);
    }
    if (rows > this.#maxBatchSize) throw batchTooBig(request, this.#maxBatchSize, this.#model);
    return rows;
  }

  #checkInput(request: InferRequest, rule: InputRule, input: Tensor, rows: number): void {
    const { spec } = rule;
    if (input.datatype !== spec.datatype) {
      throw refuse(
        request,
        `inference input '${spec.name}' data-type is '${input.datatype}', but model '${this.#model}' expects '${spec.datatype}'`,
        'input_datatype_mismatch',
      );
    }
    const perRow = checkShape(request, rule, input, this.#model);
    // Triton counts zero rows as one, so that an empty batch is refused for its missing bytes.
    const elements = perRow * (rule.batches ? rows || 1 : 1);
    if (rule.elementBytes === 0) checkBytesInput(request, input, elements, this.#model);
    else checkByteSize(request, input, elements * rule.elementBytes, this.#model);
    if (rule.batches && rows === 0)
      throw refuse(request, `input '${spec.name}' has a batch of 0 rows for model '${this.#model}', expected at least 1`, 'batch_empty');
  }

  #shapeKey(inputs: readonly Tensor[]): string {
    let key = '';
    for (const input of inputs) {
      const index = this.#indexOf.get(input.name) as number;
      const rule = this.#rules[index] as InputRule;
      if (!rule.spec.optional && rule.rowElements >= 0) continue;
      key += `${index}:`;
      for (let d = rule.firstDim; d < input.shape.length; d++) key += `${input.shape[d]},`;
      key += ';';
    }
    return key;
  }
}

/** Prepares the checks of one model version; the caller keeps the result as long as `served` (a WeakMap serves). */
export function compileSignature(served: ServedModel): Signature {
  return new CompiledSignature(served);
}
