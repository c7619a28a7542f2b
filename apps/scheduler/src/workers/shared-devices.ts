/**
 * Which instances share a device with those of other loads: those that their worker has put on a GPU. Each such device is
 * one slot for all lanes, with as many batches at a time as the lane's own load has instances there.
 */
import { CPU_DEVICE } from '@paceline/core';
import type { LoadReport } from '@paceline/worker-rpc';
import type { DeviceCredits, DeviceShare } from '../batching/device-credits.js';

/** Instances of one load at one worker, by local name, with the device of each where some are not on the processor. */
export type PlacedInstances = Pick<LoadReport, 'instances' | 'devices'>;

/** @returns the share of an instance by its local name; undefined = this worker's part of the load shares nothing */
export function sharesOf(
  { instances, devices = [] }: PlacedInstances,
  credits: DeviceCredits,
  /** Names the worker's devices across the cluster, `<worker>/`; '' where there is one worker. */
  prefix = '',
): ((instance: string) => DeviceShare | undefined) | undefined {
  if (!devices.some((device) => device !== CPU_DEVICE)) return undefined;
  return (instance) => {
    const device = devices[instances.indexOf(instance)];
    if (device === undefined || device === CPU_DEVICE) return undefined;
    return { slot: credits.of(prefix + device), limit: devices.filter((each) => each === device).length };
  };
}

/**
 * The same over all workers that have a load, now or later.
 * @param at a worker's part of the load
 * @returns the share of an instance named `<worker>/<local name>`
 */
export function clusterSharesOf(
  at: (worker: string) => PlacedInstances | undefined,
  credits: DeviceCredits,
): (instance: string) => DeviceShare | undefined {
  return (instance) => {
    const local = instance.indexOf('/') + 1;
    const placed = at(instance.slice(0, local - 1));
    return placed && sharesOf(placed, credits, instance.slice(0, local))?.(instance.slice(local));
  };
}
