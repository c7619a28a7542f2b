/** Suggests what a mistyped name was meant to be. */

/** Levenshtein distance, given up above `limit`. */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      current.push(Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + cost));
    }
    previous = current;
  }
  return previous[b.length] ?? limit + 1;
}

/** The candidate nearest to `name`, if it is near: a third of the letters may differ, case does not count. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > 100) return undefined;
  const limit = Math.max(1, Math.floor(name.length / 3));
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const d = distance(name.toLowerCase(), candidate.toLowerCase(), limit);
    if (d < bestDistance) [best, bestDistance] = [candidate, d];
  }
  return best;
}
