/** Ids of stream entries, `<milliseconds>-<number>`, both below 2^53. */

/** The stream before its first entry. */
export const FIRST_CURSOR = '0-0';

/** Negative where `a` is the earlier one, positive where it is the later one. */
export function compareIds(a: string, b: string): number {
  const [aMs = 0, aNumber = 0] = a.split('-').map(Number);
  const [bMs = 0, bNumber = 0] = b.split('-').map(Number);
  return aMs - bMs || aNumber - bNumber;
}

/** The lowest id that is later. */
export function idAfter(id: string): string {
  const [ms = '0', number = '0'] = id.split('-');
  return `${ms}-${Number(number) + 1}`;
}
