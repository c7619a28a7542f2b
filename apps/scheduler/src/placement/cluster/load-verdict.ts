/** Judges a load that somebody waits for: it has come up, it has failed, or what it waits for. */
import type { Unplaced } from '@paceline/core';
import type { ServingError } from '@paceline/protocol';
import { describeWant, wantError, type LoadTarget, type PendingLoad } from './load-target.js';

export type LoadVerdict =
  | { readonly kind: 'ended'; readonly error: ServingError | undefined }
  /** `text` is for whoever asked. */
  | { readonly kind: 'waits'; readonly text: string };

/**
 * @param loading workers that were asked and have not answered
 * @param up workers that have it and stay
 * @param why the planner's reason, where it found no place for it
 */
export function judgeLoad(
  target: LoadTarget,
  pending: PendingLoad,
  {
    loading,
    up,
    why,
    nowUs,
  }: { readonly loading: number; readonly up: number; readonly why: Unplaced['why'] | undefined; readonly nowUs: number },
): LoadVerdict {
  const { version } = target.spec;
  if (up > 0 && (loading === 0 || pending.adopted)) return { kind: 'ended', error: undefined };
  if (loading > 0) return { kind: 'waits', text: `version ${version} is loading on ${loading + up} workers, ${up} are ready` };
  if (why === 'excluded') return { kind: 'ended', error: target.lastError ?? wantError(why, target) };
  const limitUs = why === 'no_device' || why === 'no_room' ? pending.fitDeadlineUs : pending.deadlineUs;
  if (nowUs >= limitUs) return { kind: 'ended', error: wantError(why ?? 'no_room', target) };
  const until = why === undefined ? 'memory comes free' : `a worker joins: ${describeWant(why, target)}`;
  return { kind: 'waits', text: `version ${version} waits until ${until}` };
}
