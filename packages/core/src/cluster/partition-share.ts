/**
 * Which partitions a scheduler should try for and which it should give up, seen by that scheduler alone: nobody assigns
 * partitions, each member computes the same quotas from the same membership. Invariant: the quotas of the members of one
 * view add up to the number of partitions, so whatever is given up has somebody who wants it, and once every member has
 * its quota nothing moves any more.
 */

/** What one scheduler knows when it decides. */
export interface ShareView {
  /** Its own id. */
  readonly self: string;
  /** Ids of the schedulers that are live and not draining; `self` counts as one of them whether it is named or not. */
  readonly schedulers: readonly string[];
  /** How many partitions there are; they are numbered from 0. */
  readonly partitions: number;
  /** Those whose lease it holds. */
  readonly held: readonly number[];
}

export interface ShareActions {
  /** What to try for, in this order, until `wanted` of them are had; most will turn out to be held by others. */
  readonly candidates: readonly number[];
  /** How many more it ought to have; 0 = none. */
  readonly wanted: number;
  /** The one to give up now; never more than one at a time, so that a handover stalls as little as possible. */
  readonly surplus: number | undefined;
}

/** @returns how many of `partitions` each of the `schedulers` ought to hold, in the order of their sorted ids */
export function shareQuota(rank: number, schedulers: number, partitions: number): number {
  const whole = Math.floor(partitions / schedulers);
  return rank < partitions % schedulers ? whole + 1 : whole;
}

/**
 * Of the free partitions a member prefers those that equal its rank modulo the number of members: members that start at
 * the same moment then try for different ones, and the ones given up first are those that others prefer.
 */
export function shareOf(view: ShareView): ShareActions {
  const members = [...new Set([...view.schedulers, view.self])].sort();
  const rank = members.indexOf(view.self);
  const quota = shareQuota(rank, members.length, view.partitions);
  const preferred = (partition: number) => partition % members.length === rank;
  const held = new Set(view.held);
  if (held.size > quota) {
    const foreign = view.held.filter((partition) => !preferred(partition));
    const from = foreign.length > 0 ? foreign : view.held;
    return { candidates: [], wanted: 0, surplus: Math.max(...from) };
  }
  if (held.size === quota) return { candidates: [], wanted: 0, surplus: undefined };
  const own: number[] = [];
  const others: number[] = [];
  for (let step = 0; step < view.partitions; step++) {
    // Beyond its own, each begins at a place of its own.
    const partition = (step + rank) % view.partitions;
    if (!held.has(partition)) (preferred(partition) ? own : others).push(partition);
  }
  return { candidates: [...own, ...others], wanted: quota - held.size, surplus: undefined };
}
