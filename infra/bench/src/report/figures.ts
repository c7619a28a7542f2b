/** The figures that a run is judged by: one value a round, the median of them, and the target beside it. */

export type Goal = { readonly atLeast: number } | { readonly atMost: number };

export interface Figure {
  readonly scenario: string;
  readonly what: string;
  readonly unit: string;
  readonly goal: Goal;
  /** One a round, in the order of the rounds. */
  readonly values: readonly number[];
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Median, lowest and highest; all NaN for no values. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (i: number): number => sorted[i] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return { median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, min: at(0), max: at(sorted.length - 1) };
}

/** Judged by the median, so one disturbed round does not decide. NaN is a miss. */
export function isReached(figure: Figure): boolean {
  const { median } = spread(figure.values);
  return 'atLeast' in figure.goal ? median >= figure.goal.atLeast : median <= figure.goal.atMost;
}

/** `a[i] / b[i]` for each round. */
export function ratios(a: readonly number[], b: readonly number[]): number[] {
  return a.map((value, i) => value / (b[i] ?? Number.NaN));
}
