/** What an API key may be allowed to do. Closed: a scope that is not listed here opens nothing. */

/** In the order that help and messages list them. `infer` is what Triton's restricted APIs call `inference`. */
export const KEY_SCOPES = [
  'health',
  'metadata',
  'infer',
  'model-config',
  'model-repository',
  'statistics',
  'metrics',
  'logging',
  'trace',
  'shared-memory',
] as const;

/** One group of routes and calls; see the table in the security page for which. */
export type KeyScope = (typeof KEY_SCOPES)[number];

export function isKeyScope(text: string): text is KeyScope {
  return (KEY_SCOPES as readonly string[]).includes(text);
}
