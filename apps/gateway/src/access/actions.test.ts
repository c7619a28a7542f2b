/** No route and no method is missing from the table of actions: what is missing there is shut for holders of keys too. */
import { expect, it } from '@jest/globals';
import { GRPCInferenceService } from '@paceline/protocol/grpc';
import { Health } from '@paceline/protocol/health';
import { AccessRig } from '../testing/access-rig.js';
import { actionOfMethod, actionOfRoute } from './actions.js';

it('every HTTP route is in the table', async () => {
  const routes: [string, string][] = [];
  const rig = await AccessRig.start({
    onRoute: (method, url) => routes.push([method, url]),
  });
  await rig.stop();
  expect(routes.length).toBeGreaterThan(12);
  // Nest answers what no route takes by routes for everything; they are no actions.
  const missing = routes.filter(([method, url]) => !url.includes('*') && actionOfRoute(method, url) === undefined);
  expect(missing).toEqual([]);
  expect(routes.filter(([method, url]) => actionOfRoute(method, url)?.alwaysOpen)).toEqual([['GET', '/v2/health/live']]);
});

it('every gRPC method is in the table', () => {
  const methods = [...GRPCInferenceService.methods, ...Health.methods].map(({ localName }) => localName);
  expect(methods.filter((name) => actionOfMethod(name) === undefined)).toEqual([]);
  expect(methods.filter((name) => actionOfMethod(name)?.alwaysOpen)).toEqual(['serverLive']);
  for (const name of ['constructor', '__proto__', 'toString']) expect(actionOfMethod(name)).toBeUndefined();
});
