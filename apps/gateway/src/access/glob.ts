/** Matches model names against globs in time proportional to the product of both lengths at worst; no backtracking of patterns. */

/** @param glob `*` stands for any characters, `?` for one; everything else for itself */
export function matchesGlob(glob: string, name: string): boolean {
  let g = 0;
  let n = 0;
  /** The last star and how far of the name it covers, to come back to when what follows it does not fit. */
  let star = -1;
  let covered = 0;
  while (n < name.length) {
    if (glob[g] === '*') {
      star = g++;
      covered = n;
    } else if (g < glob.length && (glob[g] === '?' || glob[g] === name[n])) {
      g += 1;
      n += 1;
    } else if (star >= 0) {
      g = star + 1;
      n = ++covered;
    } else return false;
  }
  while (glob[g] === '*') g += 1;
  return g === glob.length;
}
