/**
 * What becomes of a request whose batch did not end well. Pure. A request is started at most twice among others; if both
 * times its instance died, it runs once more in quarantine, alone and where it harms nobody, so that of the suspects only
 * the one that kills gets the error. One that died alone after an earlier loss is known to be it. A model's own failure
 * is isolated at once. Nothing is tried for ever: what never gets to begin ends with the reason of the last attempt.
 */
import type { BatchCompletion } from '@paceline/worker-rpc';

export type Recovery =
  /** Back to the head of the queue; `counted`: its timeout starts anew, because it had begun to execute. */
  | { readonly kind: 'requeue'; readonly counted: boolean }
  /** Again in a batch of its own. */
  | { readonly kind: 'alone' }
  /** Again in a batch of its own in a host that serves nothing else. */
  | { readonly kind: 'quarantine' }
  /** Answer with the error of the completion. */
  | { readonly kind: 'failed' }
  /** Answer that it kills its instance. */
  | { readonly kind: 'killer' };

/** What is known of a request and of the batch it was in; the losses include the one that just happened. */
export interface Attempt {
  /** Members of the batch that ended. */
  readonly members: number;
  /** Times its instance died after it had begun. */
  readonly losses: number;
  /** Times its instance died, or refused it, before it began. */
  readonly falseStarts: number;
  /** Where the batch ran: among others, by itself, or by itself in quarantine. */
  readonly place: 'together' | 'alone' | 'quarantine';
}

/** Starts that came to nothing before a request is suspected: an instance that dies while it reads one never begins it. */
const MOST_FALSE_STARTS = 5;

const REQUEUE: Recovery = { kind: 'requeue', counted: false };
const RETRY: Recovery = { kind: 'requeue', counted: true };
const ALONE: Recovery = { kind: 'alone' };
const QUARANTINE: Recovery = { kind: 'quarantine' };
const FAILED: Recovery = { kind: 'failed' };
const KILLER: Recovery = { kind: 'killer' };

export function recoveryOf(completion: Pick<BatchCompletion, 'outcome' | 'started'>, attempt: Attempt): Recovery {
  const { members, losses, falseStarts, place } = attempt;
  const again = place === 'quarantine' ? QUARANTINE : place === 'alone' ? ALONE : REQUEUE;
  switch (completion.outcome) {
    case 'failed':
      return members > 1 ? ALONE : FAILED;
    case 'lost':
      if (!completion.started) return hopeless(falseStarts, place) ?? again;
      if (place === 'quarantine') return KILLER;
      if (losses < 2) return place === 'alone' ? ALONE : RETRY;
      return members > 1 ? QUARANTINE : KILLER;
    case 'refused':
      // An instance that refused is not asked again before it is ready; a quarantine has no such state.
      return (place === 'quarantine' ? hopeless(falseStarts, place) : undefined) ?? again;
    case 'ok':
      return again;
  }
}

function hopeless(falseStarts: number, place: Attempt['place']): Recovery | undefined {
  if (falseStarts < MOST_FALSE_STARTS) return undefined;
  return place === 'quarantine' ? FAILED : QUARANTINE;
}
