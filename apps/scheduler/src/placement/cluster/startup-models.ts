/**
 * What a new placement owner brings up: the models of the start-up as the options name them, changed by what was loaded
 * and unloaded by request since. Where the store has lost those requests, the workers' loads tell of them; a request to
 * unload a model of the start-up is then forgotten.
 */
import { sep } from 'node:path';
import type { DesiredModel } from '@paceline/cluster-state';
import { modelConfigToJson } from '@paceline/core';
import type { LoadSpec, ModelAnnouncement } from '@paceline/worker-rpc';
import type { StartupModel } from '../model-manager.js';
import type { ModelSource, SourceModel, SourceRequest } from '../model-source.js';
import type { WorkerFleet } from './worker-fleet.js';

/** The request that brings up a model as it was asked for. */
export function requestOf({ config, root }: Pick<DesiredModel, 'config' | 'root'>): SourceRequest {
  return { ...(config === undefined ? {} : { config }), ...(root === undefined ? {} : { root }) };
}

/** @param names of the start-up options */
export function mergeStartup(names: readonly string[], desired: readonly DesiredModel[]): StartupModel[] {
  const byName = new Map(desired.map((model) => [model.model, model]));
  const named = names.flatMap((model) => {
    const asked = byName.get(model);
    if (asked?.wanted === false) return [];
    return [asked === undefined ? { model } : { model, request: requestOf(asked) }];
  });
  const others = desired.filter(({ model, wanted }) => wanted && !names.includes(model));
  return [...named, ...others.map((asked) => ({ model: asked.model, request: requestOf(asked), required: false }))];
}

/**
 * Requests that the active loads of the workers bear witness to: models that the start-up does not name, and those whose
 * configuration is not the repository's own.
 */
export async function rebuildDesired(
  names: readonly string[],
  fleet: WorkerFleet,
  source: ModelSource,
  uploadDirectory: string | undefined,
): Promise<DesiredModel[]> {
  const newest = new Map<string, ModelAnnouncement>();
  for (const { loads } of fleet.workers.values()) {
    for (const load of loads.values()) {
      const other = newest.get(load.spec.model);
      if (load.state === 'active' && (other?.spec.generation ?? 0) < load.spec.generation) newest.set(load.spec.model, load);
    }
  }
  const rebuilt = [...newest.values()].map(async (load): Promise<DesiredModel[]> => {
    const { model, config } = load.spec;
    const root = uploadedRoot(load.spec, uploadDirectory);
    const own = root === undefined ? await source.read(model, {}).catch(() => undefined) : undefined;
    if (isOf(own, load)) return names.includes(model) ? [] : [{ model, wanted: true, config: undefined }];
    const files = root === undefined ? {} : { root };
    return [{ model, wanted: true, config: JSON.stringify(modelConfigToJson(config)), ...files }];
  });
  return (await Promise.all(rebuilt)).flat();
}

function isOf(source: SourceModel | undefined, { fingerprint }: ModelAnnouncement): boolean {
  return source?.versions.some((version) => version.fingerprint === fingerprint) ?? false;
}

/** The folder of a load that came with its files: the first one below the directory of uploads. */
function uploadedRoot({ modelPath }: LoadSpec, directory: string | undefined): string | undefined {
  if (directory === undefined || !modelPath.startsWith(`${directory}${sep}`)) return undefined;
  const [folder = ''] = modelPath.slice(directory.length + 1).split(sep);
  return `${directory}${sep}${folder}`;
}
