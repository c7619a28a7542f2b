/** Reads the small JSON bodies of control routes: an absent body is an empty object, and nothing else but an object is taken. */
import { ServingError } from '@paceline/protocol';
import { kindOf } from './load-parameters.js';

export type JsonObject = Readonly<Record<string, unknown>>;

const refuse = (message: string): never => {
  throw new ServingError('INVALID_ARGUMENT', message, { reason: 'malformed_body' });
};

/** @param body the raw bytes, undefined where none were sent. @throws ServingError INVALID_ARGUMENT. */
export function readJsonBody(body: unknown): JsonObject {
  if (!Buffer.isBuffer(body) || body.length === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (error) {
    refuse(`failed to parse the request JSON buffer: ${error instanceof Error ? error.message : 'not JSON'}`);
  }
  return asObject(value, 'the request body');
}

/** The member `key` of `body` as an object; absent = empty. */
export function objectMember(body: JsonObject, key: string): JsonObject {
  const value = body[key];
  return value === undefined ? {} : asObject(value, `'${key}'`);
}

/** The member `key` of `body` as a boolean; absent = false. */
export function booleanMember(body: JsonObject, key: string): boolean {
  const value = body[key];
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  return refuse(`Invalid value for '${key}': expected a boolean, got ${kindOf(value)}`);
}

function asObject(value: unknown, what: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  return refuse(`expected ${what} to be a JSON object, got ${kindOf(value)}`);
}
