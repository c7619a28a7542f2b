/** What batches of a few kinds of model cost, as measured on one core or published, for simulations; times in microseconds. */

export interface ModelCost {
  readonly name: string;
  readonly us: (rows: number) => number;
  /** Rows a second at the best batch size up to 64. */
  readonly capacity: number;
}

function model(name: string, us: (rows: number) => number): ModelCost {
  let capacity = 0;
  for (let rows = 1; rows <= 64; rows++) capacity = Math.max(capacity, (rows / us(rows)) * 1e6);
  return { name, us, capacity };
}

/** Rows a second at a batch size, in between linear in the rate. */
function fromRates(points: readonly (readonly [rows: number, rate: number])[]): (rows: number) => number {
  return (rows) => {
    const at = Math.max(
      1,
      points.findIndex(([size]) => rows <= size),
    );
    const [x0, y0] = points[at - 1] as [number, number];
    const [x1, y1] = points[at] as [number, number];
    return (rows / (y0 + ((y1 - y0) * (rows - x0)) / (x1 - x0))) * 1e6;
  };
}

/** 50 MB of weights that are read once a pass: 5 ms for one row, 13 ms for 64. */
export const MEMORY_BOUND_MLP = model('memory-bound MLP', (rows) => 4870 + 127 * rows);
/** The ResNet example of the Symphony scheduler: 5.2 ms a pass and 1.08 ms a row. */
export const LINEAR_GPU = model('linear, GPU-like', (rows) => 5200 + 1080 * rows);
/** Falls off once its activations leave the cache. */
export const EARLY_PEAK_CNN = model(
  'CNN, peak at 8',
  fromRates([
    [1, 480],
    [2, 560],
    [4, 590],
    [8, 637],
    [16, 605],
    [32, 521],
    [64, 356],
  ]),
);
