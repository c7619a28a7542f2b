/** What is used of the package `tdigest`, which brings no types. */
declare module 'tdigest' {
  export class TDigest {
    /** @param delta the largest share of all observations that one centroid may stand for */
    constructor(delta?: number);
    push(value: number): void;
    toArray(): { readonly mean: number; readonly n: number }[];
  }
}
