/** Which paths exist, whatever the method: tells "no such path" (404) from "not with this method" (405). */
const MODEL = '/v2/models/[^/]+(?:/versions/\\d+)?';

type Allowed = 'GET' | 'POST' | 'GET, POST';

const ROUTES: readonly { readonly path: RegExp; readonly allow: Allowed }[] = [
  { path: /^\/v2\/?$/, allow: 'GET' },
  { path: /^\/v2\/health\/(?:live|ready)$/, allow: 'GET' },
  { path: new RegExp(`^${MODEL}(?:/(?:ready|config|stats))?$`), allow: 'GET' },
  { path: new RegExp(`^${MODEL}/infer$`), allow: 'POST' },
  { path: /^\/v2\/repository\/index$/, allow: 'POST' },
  { path: /^\/v2\/logging(?:\/modules)?$/, allow: 'GET, POST' },
  { path: /^\/v2\/(?:models\/[^/]+\/)?trace\/setting$/, allow: 'GET, POST' },
  { path: /^\/v2\/repository\/models\/[^/]+\/(?:load|unload)$/, allow: 'POST' },
];

/** The methods that the path of `url` takes; undefined where no such path exists. A query string does not matter. */
export function allowedMethod(url: string): Allowed | undefined {
  const path = url.split('?', 1)[0]!;
  return ROUTES.find((route) => route.path.test(path))?.allow;
}

/** Whether the path names a repository, which Triton reserves and nobody serves. */
export function namesRepository(url: string): boolean {
  return /^\/v2\/repository\/[^/]+\/(?:index|models\/[^/]+\/(?:load|unload))$/.test(url.split('?', 1)[0]!);
}
