/**
 * What becomes of a request whose batch did not end well. Pure. A request is started at most twice together with others;
 * if both times its instance died it runs alone, so that of the suspects only the one that kills gets the error, and a
 * request that dies alone after an earlier loss is that one. A model's own failure is isolated at once.
 */
import type { BatchCompletion } from '@paceline/worker-rpc';

export type Recovery =
  /** Back to the head of the queue; `counted`: its timeout starts anew, because it had begun to execute. */
  | { readonly kind: 'requeue'; readonly counted: boolean }
  /** Again in a batch of its own. */
  | { readonly kind: 'alone' }
  /** Answer with the error of the completion. */
  | { readonly kind: 'failed' }
  /** Answer that it kills its instance. */
  | { readonly kind: 'killer' };

const REQUEUE: Recovery = { kind: 'requeue', counted: false };
const RETRY: Recovery = { kind: 'requeue', counted: true };
const ALONE: Recovery = { kind: 'alone' };

/**
 * @param members of the batch that ended
 * @param losses of this request so far, the one that just happened included
 * @param wasAlone it ran in a batch of its own because it was suspected or being isolated
 */
export function recoveryOf(
  completion: Pick<BatchCompletion, 'outcome' | 'started'>,
  members: number,
  losses: number,
  wasAlone: boolean,
): Recovery {
  switch (completion.outcome) {
    case 'failed':
      return members > 1 ? ALONE : { kind: 'failed' };
    case 'lost':
      if (!completion.started) return wasAlone ? ALONE : REQUEUE;
      if (losses < 2) return wasAlone ? ALONE : RETRY;
      return members > 1 ? ALONE : { kind: 'killer' };
    case 'refused':
    case 'ok':
      return wasAlone ? ALONE : REQUEUE;
  }
}
