/**
 * Which host an instance gets. A host of its own is the rule: a crash, a leak or a long run then touches nobody else.
 * Once several hosts are in use, models that are not large share pools of about one host per core, so that hundreds of
 * them fit on one machine. While a host loads a model, the others in it wait: tiny models, whose load takes a few
 * milliseconds, have a pool apart from small ones, whose load takes tens. A model that took a host down with it, or is
 * slow, stays out of the pools. Pure.
 */
export type PoolSize = 'tiny' | 'small';

/** From the size of the model's files, and not for what runs elsewhere than on the CPU. */
export function poolSizeOf(fileBytes: number, limits: { readonly tinyBytes: number; readonly smallBytes: number }): PoolSize | undefined {
  if (fileBytes > limits.smallBytes) return undefined;
  return fileBytes > limits.tinyBytes ? 'small' : 'tiny';
}

export interface PlacementLimits {
  /** Hosts of their own that small models may take before they share. */
  readonly dedicatedHosts: number;
  /** Hosts in each pool. */
  readonly poolHosts: number;
}

export interface PoolHostLoad {
  readonly instances: number;
  /** Instances of the model that is being placed. */
  readonly sameModel: number;
}

export interface PlacementRequest {
  /** The pool it may share; undefined: too large for any. */
  readonly size: PoolSize | undefined;
  /** It was slow, or its host died while it ran. */
  readonly isolated: boolean;
}

export type Placement =
  | { readonly host: 'dedicated'; readonly reason: 'large' | 'isolated' | 'few_hosts' }
  | { readonly host: 'new_pool_host'; readonly reason: 'pool_not_full' }
  | { readonly host: 'pool'; readonly index: number; readonly reason: 'least_loaded' };

/** @param pool the hosts of the pool that the request may share */
export function choosePlacement(
  request: PlacementRequest,
  dedicatedInUse: number,
  pool: readonly PoolHostLoad[],
  limits: PlacementLimits,
): Placement {
  if (request.size === undefined) return { host: 'dedicated', reason: 'large' };
  if (request.isolated) return { host: 'dedicated', reason: 'isolated' };
  if (dedicatedInUse < limits.dedicatedHosts) return { host: 'dedicated', reason: 'few_hosts' };
  if (pool.length < limits.poolHosts) return { host: 'new_pool_host', reason: 'pool_not_full' };
  let best = 0;
  for (let i = 1; i < pool.length; i++) {
    const better = pool[i]!.sameModel - pool[best]!.sameModel || pool[i]!.instances - pool[best]!.instances;
    if (better < 0) best = i;
  }
  return { host: 'pool', index: best, reason: 'least_loaded' };
}
