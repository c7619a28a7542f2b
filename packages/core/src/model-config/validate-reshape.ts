/** Judges `reshape`, and translates shapes between what clients see and what the model file takes. */
import type { ModelConfig, ModelInput, ModelOutput } from '@paceline/protocol/model-config';
import type { IssueList } from './issue.js';

/** Products of the fixed dimensions between the variable ones: [-1,2,3,-1] → [1,6,1]. */
function fixedProducts(dims: readonly bigint[]): bigint[] {
  const products = [1n];
  for (const dim of dims) {
    if (dim === -1n) products.push(1n);
    else products[products.length - 1] = (products.at(-1) ?? 1n) * dim;
  }
  return products;
}

function checkReshape(
  direction: 'input' | 'output',
  tensor: ModelInput | ModelOutput,
  index: number,
  config: ModelConfig,
  issues: IssueList,
): void {
  if (tensor.reshape === undefined) return;
  const at = `${direction}[${index}].reshape`;
  const subject = `model ${direction} '${tensor.name}'`;
  const { shape } = tensor.reshape;
  if (shape.some((dim) => dim < 1n && dim !== -1n)) {
    issues.add(`${at}.shape`, `${subject} reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for ${config.name}`,
      `found [${shape.join(',')}]`); // prettier-ignore
    return;
  }
  if (shape.length === 0 && config.maxBatchSize === 0) {
    issues.add(at, `${subject} cannot have empty reshape for non-batching model as scalar tensors are not supported for ${config.name}`);
    return;
  }
  const from = fixedProducts(tensor.dims);
  const to = fixedProducts(shape);
  if (from.length !== to.length) {
    issues.add(`${at}.shape`, `${subject} has different number of variable-size dimensions for dims and reshape for ${config.name}`);
  } else if (from.some((product, i) => product !== to[i])) {
    issues.add(`${at}.shape`, `${subject} has different size for dims and reshape for ${config.name}`,
      `dims [${tensor.dims.join(',')}], reshape [${shape.join(',')}]`); // prettier-ignore
  }
}

export function checkReshapes(config: ModelConfig, issues: IssueList): void {
  config.input.forEach((input, i) => checkReshape('input', input, i, config, issues));
  config.output.forEach((output, i) => checkReshape('output', output, i, config, issues));
}

/**
 * A concrete shape of form `from` as the same elements in form `to`: the k-th -1 of `to` takes the value that `actual`
 * has at the k-th -1 of `from`. Used with `TensorSpec.shape` and `TensorSpec.modelShape`, one way for inputs and the other
 * for outputs.
 * @param actual same rank as `from`
 */
export function mapShape(actual: readonly number[], from: readonly number[], to: readonly number[]): number[] {
  const variable: number[] = [];
  from.forEach((dim, i) => {
    if (dim === -1) variable.push(actual[i] ?? 0);
  });
  let next = 0;
  return to.map((dim) => (dim === -1 ? (variable[next++] ?? 0) : dim));
}
