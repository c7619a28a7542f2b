/** Seeded random numbers: every model file, body and send time of a run follows from its seed. */

/** A generator of numbers in [0, 1), 32 bits of state (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Send times of a Poisson process of `ratePerS`, in milliseconds from its start, ascending, all below `durationMs`. */
export function poissonTimesMs(ratePerS: number, durationMs: number, seed: number): Float64Array {
  const random = seededRandom(seed);
  const times: number[] = [];
  for (let at = 0; ;) {
    at -= (Math.log(1 - random()) * 1000) / ratePerS;
    if (at >= durationMs) return Float64Array.from(times);
    times.push(at);
  }
}
