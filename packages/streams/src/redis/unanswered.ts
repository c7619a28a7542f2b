/** One request that a gateway holds until it has answered it, and how far its way through Redis has got. */
import type { Envelope } from '@paceline/protocol';

/** - `waiting`: for the next entry; - `writing`: in an entry that Redis has not confirmed; - `written`. */
export type HandoverStage = 'waiting' | 'writing' | 'written';

export interface Unanswered {
  envelope: Envelope;
  /** Where it was handed over last. */
  partition: number;
  /** Bytes of the inputs that stay with the gateway; undefined = they travel inline. */
  readonly heldBytes: number | undefined;
  /** When it came, microseconds of the gateway's clock: its times run from here. */
  readonly sinceUs: number;
  stage: HandoverStage;
  /** It has been in an entry, so a scheduler may know it. */
  handedOver: boolean;
  /** Answered or cancelled: nothing more is written of it. */
  done: boolean;
  /** Once Redis has it, the scheduler is told that it is not wanted any more. */
  cancelWhenWritten: boolean;
  /** There was reason to send it again before Redis had confirmed it: it is, once that is known. */
  againWhenWritten: boolean;
  /** Attempts that began to execute and were lost. */
  startedAttempts: number;
}
