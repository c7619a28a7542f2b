/**
 * Deals with the members of a batch that did not end well: counts what happened to each and has it dropped, refused or
 * tried again, as recovery.ts decides. Last ones first, so that those put back to the head of a queue keep their order.
 */
import type { ServingError } from '@paceline/protocol';
import type { BatchCompletion } from '@paceline/worker-rpc';
import type { IsolatedState } from './isolation.js';
import type { LaneBatch } from './lane-batch.js';
import * as errors from './lane-errors.js';
import type { LaneItem } from './lane-item.js';
import { recoveryOf } from './recovery.js';

/** What can become of a member. */
export interface MemberFates {
  /** Nobody waits for it here. */
  isDropped(item: LaneItem): boolean;
  drop(item: LaneItem): void;
  refuse(item: LaneItem, error: ServingError): void;
  /** @param isCounted it had begun to execute: its timeout starts anew */
  tryAgain(item: LaneItem, state: 'queued' | IsolatedState, isCounted: boolean): void;
}

export function recoverMembers(flight: LaneBatch, completion: BatchCompletion, fates: MemberFates): void {
  const place = flight.batch.quarantine ? 'quarantine' : flight.reason === 'isolated' ? 'alone' : 'together';
  const members = flight.items.length;
  for (const item of [...flight.items].reverse()) {
    if (completion.outcome === 'lost' && completion.started) item.losses += 1;
    else if (completion.outcome !== 'failed') item.falseStarts += 1;
    const { losses, falseStarts, envelope } = item;
    const recovery = recoveryOf(completion, { members, losses, falseStarts, place });
    if (fates.isDropped(item)) fates.drop(item);
    else if (recovery.kind === 'failed') fates.refuse(item, completion.error ?? errors.modelFailed(envelope));
    else if (recovery.kind === 'killer') fates.refuse(item, errors.instanceKilled(envelope, completion.instance, completion.error));
    else if (recovery.kind === 'requeue') fates.tryAgain(item, 'queued', recovery.counted);
    else fates.tryAgain(item, recovery.kind === 'alone' ? 'alone' : 'quarantined', true);
  }
}
