/** The one table of flags: all of Triton's, each with what becomes of it, Paceline's limits, and those of a cluster's processes. */
import type { z } from 'zod';
import { accessFlags } from './flags/access-flags.js';
import { clusterFlags } from './flags/cluster-flags.js';
import { backendFlags, limitFlags, logFlags, repositoryFlags, serverFlags, traceFlags } from './flags/main-flags.js';
import { grpcFlags, httpFlags, metricsFlags } from './flags/network-flags.js';
import { tritonFlags } from './flags/triton-flags.js';
import type { Flag } from './flag.js';

export const FLAGS = {
  ...serverFlags,
  ...repositoryFlags,
  ...httpFlags,
  ...grpcFlags,
  ...metricsFlags,
  ...accessFlags,
  ...limitFlags,
  ...logFlags,
  ...traceFlags,
  ...backendFlags,
  ...clusterFlags,
  ...tritonFlags,
} satisfies Record<string, Flag>;

export type FlagName = keyof typeof FLAGS;

/** Other spellings that mean the same flag. */
export const FLAG_ALIASES: Readonly<Record<string, FlagName>> = { 'model-store': 'model-repository' };

type ValueOf<Row> = Row extends { readonly type: { readonly schema: infer Schema extends z.ZodType } } ? z.output<Schema> : never;

/** The value of each flag after parsing, defaults applied. */
export type FlagValues = {
  readonly [Name in FlagName]: (typeof FLAGS)[Name] extends { readonly repeatable: true }
    ? readonly ValueOf<(typeof FLAGS)[Name]>[]
    : (typeof FLAGS)[Name] extends { readonly default: string }
      ? ValueOf<(typeof FLAGS)[Name]>
      : ValueOf<(typeof FLAGS)[Name]> | undefined;
};

export const FLAG_NAMES = Object.keys(FLAGS) as readonly FlagName[];

/** Environment variable that stands for a flag: `http-port` → `PACELINE_HTTP_PORT`. */
export function environmentName(name: FlagName): string {
  return `PACELINE_${name.toUpperCase().replaceAll('-', '_')}`;
}

/** The flag called `name`, under its own name or an alias; `undefined` where there is none. */
export function findFlag(name: string): FlagName | undefined {
  if (Object.hasOwn(FLAGS, name)) return name as FlagName;
  return Object.hasOwn(FLAG_ALIASES, name) ? FLAG_ALIASES[name] : undefined;
}
