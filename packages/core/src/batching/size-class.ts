/** The half-octave classes (1, 2, 3, 4, 6, 8, 12, ...) in which batch sizes are kept: every size falls into one. */

/** Index of the smallest class that holds `rows` (>= 1). */
export function classOf(rows: number): number {
  const p = 31 - Math.clz32(rows);
  const power = 2 ** p;
  if (rows === power) return p === 0 ? 0 : 2 * p - 1;
  return rows <= 1.5 * power ? 2 * p : 2 * p + 1;
}

/** The largest number of rows a class holds. */
export function classSize(index: number): number {
  if (index === 0) return 1;
  return index % 2 === 1 ? 2 ** ((index + 1) / 2) : 1.5 * 2 ** (index / 2);
}
