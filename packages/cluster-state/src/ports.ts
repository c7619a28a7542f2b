/**
 * The ports of what all processes of a cluster share and none owns: leases, membership, the desired state of models.
 * Adapters: in memory (for tests and simulations) and Redis; both keep the contract in ./testing. Every operation works at
 * Redis' `maxmemory` too. Times are judged by the store's clock alone, never by the wall clock of a process.
 */
import type { Epoch, Member } from '@paceline/protocol';

export type Acquired =
  | {
      readonly ok: true;
      /** Higher than every epoch that the store knows of this lease, and than `above`. */
      readonly epoch: Epoch;
      /** Where the previous owner stopped reading, as an id of the partition's stream; '0-0' where the store knows nothing. */
      readonly cursor: string;
      /** The store had no record of this lease: it is new, or has lost its data. */
      readonly fresh: boolean;
    }
  | { readonly ok: false; readonly owner: string };

/** Exclusive rights that end by themselves. Names: `p0`.. of partitions, `placement`. */
export interface Leases {
  /**
   * @param owner random id of this process
   * @param ttlMs how long it holds without a renewal
   * @param above the highest epoch number that is known elsewhere (0 = none): what is acquired is above it
   */
  acquire(name: string, owner: string, ttlMs: number, above: number): Promise<Acquired>;
  /** Compare and extend. @returns false when it is held by another or by nobody: acquire again */
  renew(name: string, owner: string, ttlMs: number): Promise<boolean>;
  /** Gives it up so that another may have it at once; no-op where it is not held by `owner`. */
  release(name: string, owner: string): Promise<void>;
}

export interface Membership {
  /**
   * Announces this process and reads who else is there: those whose last beat is younger than the ttl they gave. Beat at
   * least three times a ttl. After an interruption of the store (it was away, lost its data, its clock jumped) those that
   * were there before are kept for one ttl more, as they cannot have beaten.
   * @param ttlMs below 60,000
   */
  beat(self: Member, ttlMs: number): Promise<readonly Member[]>;
  /** Who is there, for one that has not announced itself. */
  look(): Promise<readonly Member[]>;
  /** Takes it out at once. */
  leave(self: Member): Promise<void>;
}

/** A model that somebody loaded or unloaded by request; models that only lie in the repository have no record. */
export interface DesiredModel {
  readonly model: string;
  readonly wanted: boolean;
  /** The load parameter `config`; undefined = the repository's own configuration. */
  readonly config: string | undefined;
  /** The folder in which the files of the load request lie; absent = it brought none. */
  readonly root?: string;
}

export interface DesiredState {
  /** @returns `fresh` where the store has no such record at all: it is new, or has lost its data */
  read(): Promise<{ readonly fresh: boolean; readonly models: readonly DesiredModel[] }>;
  write(model: DesiredModel): Promise<void>;
}
