/**
 * Passes what each gateway has counted on to all others, so that every gateway answers for the whole cluster. Counters
 * are totals: the last word of a gateway on a version replaces the one before.
 */
import { versionKey } from '@paceline/core';
import type { SchedulerMessage, VersionCounters } from '@paceline/protocol';
import type { SchedulerLinks } from '@paceline/streams';

export class CounterRelay {
  /** By gateway, then by version. */
  readonly #last = new Map<string, Map<string, VersionCounters>>();

  constructor(private readonly links: Pick<SchedulerLinks, 'tell' | 'gateways'>) {}

  onStatistics(gateway: string, versions: readonly VersionCounters[]): void {
    let last = this.#last.get(gateway);
    if (last === undefined) this.#last.set(gateway, (last = new Map<string, VersionCounters>()));
    for (const version of versions) last.set(versionKey(version), version);
    const message: SchedulerMessage = { kind: 'statistics', process: gateway, versions };
    for (const other of this.links.gateways) if (other !== gateway) this.links.tell(other, message);
  }

  /** It has heard nothing yet of what the others had counted before. */
  onGatewayUp(gateway: string): void {
    for (const [process, last] of this.#last) {
      if (process !== gateway) this.links.tell(gateway, { kind: 'statistics', process, versions: [...last.values()] });
    }
  }

  onGatewayDown(gateway: string): void {
    this.#last.delete(gateway);
  }
}
