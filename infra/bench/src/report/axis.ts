/** Axes of a plot: from values to pixels, and where the ticks go. */
export interface Axis {
  readonly toPixel: (value: number) => number;
  readonly ticks: readonly number[];
}

/** From 0 to a little above `highest`, with about six round ticks. */
export function linearAxis(highest: number, fromPixel: number, toPixel: number): Axis {
  const rough = highest / 6;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * magnitude).find((candidate) => candidate >= rough) ?? rough;
  const end = Math.ceil(highest / step) * step;
  return {
    toPixel: (value) => fromPixel + (value / end) * (toPixel - fromPixel),
    ticks: Array.from({ length: Math.round(end / step) + 1 }, (_, i) => Number((i * step).toPrecision(12))),
  };
}

/** Logarithmic over whole halves of decades (1, 3, 10, ...) that hold `lowest` and `highest`, both above 0. */
export function logAxis(lowest: number, highest: number, fromPixel: number, toPixel: number): Axis {
  const first = Math.floor(Math.log10(lowest) * 2);
  const last = Math.max(first + 1, Math.ceil(Math.log10(highest) * 2));
  const toLog = (value: number): number => (Math.log10(value) * 2 - first) / (last - first);
  return {
    toPixel: (value) => fromPixel + toLog(value) * (toPixel - fromPixel),
    ticks: Array.from({ length: last - first + 1 }, (_, i) => Number((10 ** ((first + i) / 2)).toPrecision(1))),
  };
}
