/**
 * The classification extension: an output's scores → its top K classes as BYTES strings `value:index[:label]`, best
 * first, equal scores by index, NaN last. Invariant: the result has K' = min(K, classes) strings a row.
 */
import { ServingError } from '@paceline/protocol';
import { encodeBytes, type DataType, type Tensor } from '@paceline/tensor';

const SUPPORTED = ['UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64', 'FP32', 'FP64'] as const;
export type ClassDataType = (typeof SUPPORTED)[number];

/** More strings than this in one output are refused. */
const MAX_CLASS_STRINGS = 1_000_000;

/** Whether scores of this type can be ranked. */
export function classSupports(datatype: DataType): datatype is ClassDataType {
  return (SUPPORTED as readonly DataType[]).includes(datatype);
}

type Scores = ArrayLike<number> | ArrayLike<bigint>;

function scoresOf(datatype: ClassDataType, data: Uint8Array): Scores {
  // Not slice(): on a Buffer that makes a view.
  const copy = new Uint8Array(data);
  const { buffer } = copy;
  switch (datatype) {
    case 'UINT8':
      return copy;
    case 'UINT16':
      return new Uint16Array(buffer);
    case 'UINT32':
      return new Uint32Array(buffer);
    case 'UINT64':
      return new BigUint64Array(buffer);
    case 'INT8':
      return new Int8Array(buffer);
    case 'INT16':
      return new Int16Array(buffer);
    case 'INT32':
      return new Int32Array(buffer);
    case 'INT64':
      return new BigInt64Array(buffer);
    case 'FP32':
      return new Float32Array(buffer);
    case 'FP64':
      return new Float64Array(buffer);
  }
}

/** Six decimals for floats, as C prints them; all digits for integers. */
function scoreText(score: number | bigint, float: boolean): string {
  if (typeof score === 'bigint' || !float) return score.toString();
  if (!Number.isFinite(score)) return score !== score ? 'nan' : score > 0 ? 'inf' : '-inf';
  return Math.abs(score) < 1e21 ? score.toFixed(6) : `${BigInt(score)}.000000`;
}

function ranked(scores: Scores, start: number, classes: number, k: number): number[] {
  const order = Array.from({ length: classes }, (_, i) => i);
  order.sort((a, b) => {
    const x = scores[start + a] as number | bigint;
    const y = scores[start + b] as number | bigint;
    if (x === y) return a - b;
    if (x > y) return -1;
    if (x < y) return 1;
    // At least one is NaN.
    return Number(x !== x) - Number(y !== y) || a - b;
  });
  order.length = k;
  return order;
}

/**
 * @param output scores; the batch dimension is the first where `batches`
 * @param k classes wanted, >= 1
 * @param labels one per class index, may be shorter; undefined = none
 * @throws ServingError INVALID_ARGUMENT for a type without an order or more than a million strings
 */
export function classify(output: Tensor, k: number, batches: boolean, labels: readonly string[] | undefined): Tensor {
  const { datatype, shape } = output;
  if (!classSupports(datatype)) {
    throw new ServingError('INVALID_ARGUMENT', `class result not available for output due to unsupported type '${datatype}'`, {
      reason: 'classification_unsupported',
    });
  }
  const rows = batches ? (shape[0] ?? 1) : 1;
  const scores = scoresOf(datatype, output.data);
  const classes = rows === 0 ? 0 : scores.length / rows;
  const top = Math.min(k, classes);
  if (rows * top > MAX_CLASS_STRINGS) {
    throw new ServingError(
      'INVALID_ARGUMENT',
      `classification output tensor too large: output '${output.name}' would have ${rows * top} strings, the limit is ${MAX_CLASS_STRINGS}`,
      {
        reason: 'classification_too_large',
      },
    );
  }
  const float = datatype === 'FP32' || datatype === 'FP64';
  const strings: string[] = [];
  for (let row = 0; row < rows; row++) {
    for (const index of ranked(scores, row * classes, classes, top)) {
      const label = labels?.[index];
      const text = `${scoreText(scores[row * classes + index] as number | bigint, float)}:${index}`;
      strings.push(label === undefined ? text : `${text}:${label}`);
    }
  }
  return { name: output.name, datatype: 'BYTES', shape: batches ? [rows, top] : [top], data: encodeBytes(strings) };
}
