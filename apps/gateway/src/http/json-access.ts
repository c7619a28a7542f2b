/** Typed access to parsed JSON, with Triton's texts for what is missing or of the wrong kind. All errors are INVALID_ARGUMENT. */
import { ServingError } from '@paceline/protocol';

export type JsonObject = Readonly<Record<string, unknown>>;
type Kind = 'string' | 'array' | 'boolean' | 'unsigned-integer';

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A whole number from 0 to 2^64 - 1. */
export function isUnsigned(value: unknown): value is number | bigint {
  return typeof value === 'bigint'
    ? value >= 0n && value < 1n << 64n
    : typeof value === 'number' && value >= 0 && value < 2 ** 64 && Number.isInteger(value);
}

function show(value: unknown): string {
  const text = typeof value === 'bigint' ? value.toString() : (JSON.stringify(value) ?? 'undefined');
  return text.length > 40 ? `${text.slice(0, 37)}...` : text;
}

export function badField(field: string, kind: Kind, found: unknown, verb: 'parse' | 'set' = 'parse'): ServingError {
  return new ServingError(
    'INVALID_ARGUMENT',
    `Unable to ${verb} '${field}': attempt to access JSON non-${kind} as ${kind} (found ${show(found)})`,
    { reason: 'json_invalid' },
  );
}

/** @throws ServingError where `field` is absent */
export function member(object: JsonObject, field: string): unknown {
  const value = object[field];
  if (value === undefined)
    throw new ServingError('INVALID_ARGUMENT', `Unable to parse '${field}': attempt to access non-existing object member '${field}'`, {
      reason: 'json_invalid',
    });
  return value;
}

export function asString(value: unknown, field: string): string {
  if (typeof value !== 'string') throw badField(field, 'string', value);
  return value;
}

export function asArray(value: unknown, field: string): readonly unknown[] {
  if (!Array.isArray(value)) throw badField(field, 'array', value);
  return value as readonly unknown[];
}
