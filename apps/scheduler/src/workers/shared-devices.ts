/** Which instances of a load share a device with those of other loads: those on GPUs, as their instance groups say. */
import { ModelInstanceGroup_Kind as Kind } from '@paceline/protocol/model-config';
import type { LoadSpec } from '@paceline/worker-rpc';
import type { DeviceCredits, DeviceShare } from '../batching/device-credits.js';

/** @returns the share of each instance, named `<worker>/<group>_<n>`; undefined = it shares nothing */
export function sharesOf({ model, config }: LoadSpec, credits: DeviceCredits): ((instance: string) => DeviceShare | undefined) | undefined {
  const devices = new Map<string, string>();
  /** Instances of this load on each device. */
  const counts = new Map<string, number>();
  for (const [g, { kind, gpus, name, count }] of config.instanceGroup.entries()) {
    if (kind !== Kind.GPU && (kind !== Kind.AUTO || gpus.length === 0)) continue;
    const device = `gpu:${gpus.length > 0 ? gpus.join('+') : '0'}`;
    devices.set(name || `${model}_${g}`, device);
    counts.set(device, (counts.get(device) ?? 0) + Math.max(1, count));
  }
  if (devices.size === 0) return undefined;
  return (instance) => {
    const local = instance.indexOf('/') + 1;
    const device = devices.get(instance.slice(local, instance.lastIndexOf('_')));
    if (device === undefined) return undefined;
    return { slot: credits.of(instance.slice(0, local) + device), limit: counts.get(device) ?? 1 };
  };
}
