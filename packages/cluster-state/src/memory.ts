/**
 * The shared state of a cluster that lives in one process, for tests and simulations: what a store would hold, judged by
 * the clock that it is given.
 */
import type { Clock } from '@paceline/clock';
import type { Member } from '@paceline/protocol';
import type { Acquired, DesiredModel, DesiredState, Leases, Membership } from './ports.js';

interface LeaseRecord {
  epoch: number;
  cursor: string;
  owner: string | undefined;
  endsUs: number;
}

/** One store; all processes of the simulated cluster share the instance. */
export class InMemoryClusterState {
  readonly #leases = new Map<string, LeaseRecord>();
  readonly #members = new Map<string, { readonly member: Member; readonly endsUs: number }>();
  readonly #desired = new Map<string, DesiredModel>();

  constructor(private readonly clock: Clock) {}

  readonly leases: Leases = {
    acquire: (name, owner, ttlMs, above) => Promise.resolve(this.#acquire(name, owner, ttlMs, above)),
    renew: (name, owner, ttlMs) => {
      const record = this.#held(name, owner);
      if (record) record.endsUs = this.clock.nowUs() + ttlMs * 1000;
      return Promise.resolve(record !== undefined);
    },
    release: (name, owner) => {
      const record = this.#held(name, owner);
      if (record) record.owner = undefined;
      return Promise.resolve();
    },
  };

  readonly membership: Membership = {
    beat: (self, ttlMs) => {
      this.#members.set(self.id, { member: self, endsUs: this.clock.nowUs() + ttlMs * 1000 });
      return Promise.resolve(this.#live());
    },
    look: () => Promise.resolve(this.#live()),
    leave: (self) => {
      this.#members.delete(self.id);
      return Promise.resolve();
    },
  };

  readonly desired: DesiredState = {
    read: () => Promise.resolve({ fresh: this.#desired.size === 0, models: [...this.#desired.values()] }),
    write: (model) => {
      this.#desired.set(model.model, model);
      return Promise.resolve();
    },
  };

  /** As an owner does at intake: where the next one goes on. */
  setCursor(name: string, cursor: string): void {
    const record = this.#leases.get(name);
    if (record) record.cursor = cursor;
  }

  /** As a store that lost its data. */
  clear(): void {
    this.#leases.clear();
    this.#members.clear();
    this.#desired.clear();
  }

  #live(): readonly Member[] {
    const nowUs = this.clock.nowUs();
    for (const [id, { endsUs }] of this.#members) if (endsUs <= nowUs) this.#members.delete(id);
    return [...this.#members.values()].map(({ member }) => member);
  }

  #acquire(name: string, owner: string, ttlMs: number, above: number): Acquired {
    const known = this.#leases.get(name);
    const nowUs = this.clock.nowUs();
    if (known?.owner !== undefined && known.owner !== owner && known.endsUs > nowUs) return { ok: false, owner: known.owner };
    const epoch = Math.max(known?.epoch ?? 0, above) + 1;
    const record = { epoch, cursor: known?.cursor ?? '0-0', owner, endsUs: nowUs + ttlMs * 1000 };
    this.#leases.set(name, record);
    return { ok: true, epoch: { number: epoch, owner }, cursor: record.cursor, fresh: known === undefined };
  }

  #held(name: string, owner: string): LeaseRecord | undefined {
    const record = this.#leases.get(name);
    return record?.owner === owner && record.endsUs > this.clock.nowUs() ? record : undefined;
  }
}
