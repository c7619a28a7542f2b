/** What a load on several workers reports: the instances of all of them, under names that no two share. */
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { ModelAnnouncement } from '@paceline/worker-rpc';
import { instanceName } from './worker-fleet.js';

/** Local names without those of passive groups. @param instances `<group>_<n>` */
export function activeInstances(config: ModelConfig, instances: readonly string[]): string[] {
  const passive = config.instanceGroup.filter((group) => group.passive).map(({ name }) => `${name}_`);
  return instances.filter((name) => !passive.some((prefix) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length))));
}

/** @returns those that are up, sorted by worker */
export function instanceNames(holders: readonly { readonly worker: string; readonly load: ModelAnnouncement }[]): string[] {
  const sorted = [...holders].sort((a, b) => (a.worker < b.worker ? -1 : 1));
  return sorted.flatMap(({ worker, load }) => load.ready.map((local) => instanceName(worker, local)));
}
