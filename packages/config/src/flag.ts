/**
 * The shape of one row of the flag table. A row says everything about its flag once: parsing, `--help`, the check of
 * values and the notices about flags without effect are all made from it.
 */
import type { z } from 'zod';

export const FLAG_GROUPS = [
  'Server',
  'Model repository',
  'HTTP',
  'gRPC',
  'Metrics',
  'Access',
  'Limits',
  'Logging',
  'Traces',
  'Backends',
  'Processes of a cluster',
  'Other flags of Triton',
] as const;
export type FlagGroup = (typeof FLAG_GROUPS)[number];

/** How the text after a flag becomes a value. */
export interface FlagType<Value> {
  /** What `--help` writes after the name, e.g. `<port>`; empty for a switch. */
  readonly placeholder: string;
  readonly schema: z.ZodType<Value, string>;
  /** The flag may stand alone, which means `true`. */
  readonly isSwitch: boolean;
}

/**
 * - `served`: does what `help` says.
 * - `without-effect`: accepted so that a Triton command line works as it is; giving it causes one warning with `reason`.
 * - `refused`: any value but the default would change answers, scheduling or who may do what, and is not served yet.
 */
export type FlagStatus =
  | { readonly kind: 'served' }
  | { readonly kind: 'without-effect'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

interface FlagBase<Value> {
  readonly group: FlagGroup;
  readonly type: FlagType<Value>;
  /** One sentence without a full stop; says the unit of a number. */
  readonly help: string;
  readonly status: FlagStatus;
}

/** A flag with one value: the last one given counts. */
export interface SingleFlag<Value = unknown> extends FlagBase<Value> {
  readonly repeatable: false;
  /** As it would be typed; `undefined` = not set. */
  readonly default: string | undefined;
  /** What `--help` shows instead of `default`. */
  readonly defaultNote?: string;
}

/** A flag that may be given several times, each adding a value. */
export interface RepeatableFlag<Value = unknown> extends FlagBase<Value> {
  readonly repeatable: true;
  readonly defaultNote?: string;
}

export type Flag<Value = unknown> = SingleFlag<Value> | RepeatableFlag<Value>;

const SERVED: FlagStatus = { kind: 'served' };

/** A flag that may be left out and then has the value of `byDefault`. */
export function flag<Value>(group: FlagGroup, type: FlagType<Value>, byDefault: string, help: string, status: FlagStatus = SERVED) {
  return { group, type, help, status, repeatable: false, default: byDefault } as const satisfies SingleFlag<Value>;
}

/** A flag that is not set unless it is given. */
export function optionalFlag<Value>(
  group: FlagGroup,
  type: FlagType<Value>,
  defaultNote: string,
  help: string,
  status: FlagStatus = SERVED,
) {
  return { group, type, help, status, repeatable: false, default: undefined, defaultNote } as const satisfies SingleFlag<Value>;
}

export function repeatableFlag<Value>(
  group: FlagGroup,
  type: FlagType<Value>,
  defaultNote: string,
  help: string,
  status: FlagStatus = SERVED,
) {
  return { group, type, help, status, repeatable: true, defaultNote } as const satisfies RepeatableFlag<Value>;
}

export function withoutEffect(reason: string): FlagStatus {
  return { kind: 'without-effect', reason };
}

export function refused(reason: string): FlagStatus {
  return { kind: 'refused', reason };
}
