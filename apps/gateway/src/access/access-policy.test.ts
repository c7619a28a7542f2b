import { describe, expect, it } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { generateApiKey, hashApiKey, KEY_SCOPES, type KeyEntry, type RestrictedApis } from '@paceline/config';
import { ServingError } from '@paceline/protocol';
import { AccessPolicy, openAccess } from './access-policy.js';
import { actionOfMethod, actionOfRoute, INFER, type Action } from './actions.js';
import { KeyRing } from './key-ring.js';

const key = generateApiKey();
const other = generateApiKey();
const entryOf = (more: Partial<KeyEntry> = {}): KeyEntry => ({
  id: 'ci',
  hash: hashApiKey(key),
  scopes: ['infer'],
  models: ['*'],
  quota: {},
  ...more,
});

const clock = new FakeClock();

function policyOf(entries: readonly KeyEntry[] | undefined, restricted: RestrictedApis = []): AccessPolicy {
  const ring = entries && new KeyRing(entries, clock);
  return new AccessPolicy({ keys: ring && (() => ring), restrictedHttp: restricted, restrictedGrpc: restricted, corsOrigins: [] });
}

const headers =
  (all: Readonly<Record<string, string>>) =>
  (name: string): string | undefined =>
    all[name];

function refusal(work: () => unknown): [string, string] {
  try {
    work();
  } catch (error) {
    if (error instanceof ServingError) return [error.code, error.message];
    throw error;
  }
  throw new Error('nothing was refused');
}

const LOAD = actionOfMethod('repositoryModelLoad') as Action;
const LIVE = actionOfMethod('serverLive') as Action;

describe('API keys', () => {
  const policy = policyOf([
    entryOf(),
    entryOf({ id: 'ops', hash: hashApiKey(other), scopes: [...KEY_SCOPES], models: ['digits*', 'ocr'] }),
  ]);

  it.each([
    ['a bearer token', { authorization: `Bearer ${key}` }],
    ['any spelling of the scheme', { authorization: `bEARER   ${key}` }],
    ['the header of its own', { 'x-api-key': key }],
    ['both, when they agree', { authorization: `Bearer ${key}`, 'x-api-key': key }],
    ['the header of its own beside what is for a proxy', { authorization: 'Basic dTpw', 'x-api-key': key }],
  ])('come as %s', (_how, sent) => {
    expect(policy.authorize('http', INFER, headers(sent)).who).toBe('key:ci');
    expect(policy.authorize('grpc', INFER, headers(sent)).who).toBe('key:ci');
  });

  it.each([
    ['no key', {}, 'this server needs an API key'],
    ['an unknown one', { authorization: `Bearer ${generateApiKey()}` }, 'not known'],
    ['an empty one', { 'x-api-key': '' }, 'not known'],
    ['part of one', { 'x-api-key': key.slice(0, -1) }, 'not known'],
    ['a right one with more behind it', { 'x-api-key': `${key}, ${key}` }, 'not known'],
    ['the hash instead of the key', { 'x-api-key': hashApiKey(key) }, 'not known'],
    ['the name of a property', { 'x-api-key': '__proto__' }, 'not known'],
    ['endless text', { 'x-api-key': 'x'.repeat(100_000) }, 'not known'],
    ['two different ones', { authorization: `Bearer ${key}`, 'x-api-key': other }, 'two different keys'],
    ['another scheme', { authorization: `Basic ${key}` }, 'this server needs an API key'],
  ])('%s is refused', (_what, sent, text) => {
    const [code, message] = refusal(() => policy.authorize('http', INFER, headers(sent)));
    expect([code, message]).toEqual(['UNAUTHENTICATED', expect.stringContaining(text)]);
    expect(message).not.toContain(key);
  });

  it('a wrong key stays wrong after a right one was seen, and a right one right', () => {
    policy.authorize('http', INFER, headers({ 'x-api-key': key }));
    for (let i = 0; i < 3; i++) {
      expect(refusal(() => policy.authorize('http', INFER, headers({ 'x-api-key': `${key}x` })))[0]).toBe('UNAUTHENTICATED');
      expect(policy.authorize('http', INFER, headers({ 'x-api-key': key })).who).toBe('key:ci');
    }
  });

  it('open what their scopes say and nothing else', () => {
    expect(refusal(() => policy.authorize('http', LOAD, headers({ 'x-api-key': key })))).toEqual([
      'PERMISSION_DENIED',
      "API key 'ci' lacks the scope 'model-repository'",
    ]);
    expect(policy.authorize('http', LOAD, headers({ 'x-api-key': other })).trusted).toBe(true);
  });

  it('open their models, and answer alike for models that do not exist', () => {
    const grant = policy.authorize('http', INFER, headers({ 'x-api-key': other }));
    for (const model of ['digits', 'digits_2', 'ocr']) expect(() => grant.requireModel(model)).not.toThrow();
    for (const model of ['ocr2', 'secret', 'nosuch', 'Digits'])
      expect(refusal(() => grant.requireModel(model))).toEqual(['PERMISSION_DENIED', `API key 'ops' does not open model '${model}'`]);
    for (let i = 0; i < 5000; i++) expect(grant.mayUse(`x${i}`)).toBe(false);
    expect(grant.mayUse('digits')).toBe(true);
  });

  it('liveness needs none; an action nobody listed is shut even with one', () => {
    expect(policy.authorize('http', LIVE, headers({})).who).toBe('anonymous');
    expect(refusal(() => policy.authorize('http', undefined, headers({})))[0]).toBe('UNAUTHENTICATED');
    expect(refusal(() => policy.authorize('http', undefined, headers({ 'x-api-key': other })))[0]).toBe('PERMISSION_DENIED');
  });

  it('requests over the rate of a key are refused with the time to wait', () => {
    const limited = policyOf([entryOf({ quota: { requestsPerSecond: 1 } })]);
    const ask = (): unknown => limited.authorize('http', INFER, headers({ 'x-api-key': key }));
    ask();
    expect(refusal(ask)).toEqual(['RESOURCE_EXHAUSTED', "API key 'ci' is over its quota of 1 requests a second"]);
    expect(ask).toThrow(expect.objectContaining({ retryAfterMs: 1000, reason: 'quota_requests_per_second' }));
    clock.advance(1_000_000);
    ask();
  });

  it('read again, they keep what they had used up, unless the quota is another', () => {
    const limited = entryOf({ quota: { requestsPerSecond: 1 } });
    const first = new KeyRing([limited], clock);
    first.find(key)?.takeRequest();
    expect(() => new KeyRing([limited], clock, first).find(key)?.takeRequest()).toThrow(/over its quota/);
    expect(() => new KeyRing([entryOf({ quota: { requestsPerSecond: 2 } })], clock, first).find(key)?.takeRequest()).not.toThrow();
  });

  it('a key that was right costs well under a microsecond', () => {
    const one = headers({ authorization: `Bearer ${key}` });
    const rounds = 20_000;
    let best = Infinity;
    for (let attempt = 0; attempt < 5; attempt++) {
      const began = performance.now();
      for (let i = 0; i < rounds; i++) policy.authorize('http', INFER, one).requireModel('digits');
      best = Math.min(best, ((performance.now() - began) * 1000) / rounds);
    }
    expect(best).toBeLessThan(1);
  });
});

describe('restricted APIs', () => {
  const policy = policyOf(undefined, [{ apis: ['model-repository', 'statistics'], key: 'Admin-Key', value: 'secret' }]);
  const text = "This API is restricted, expecting header 'Admin-Key'";

  it('ask for their header, by the name of each protocol', () => {
    expect(refusal(() => policy.authorize('http', LOAD, headers({})))).toEqual(['PERMISSION_DENIED', text]);
    expect(refusal(() => policy.authorize('http', LOAD, headers({ 'admin-key': 'wrong' })))[1]).toBe(text);
    expect(refusal(() => policy.authorize('http', LOAD, headers({ 'triton-grpc-protocol-admin-key': 'secret' })))[1]).toBe(text);
    expect(policy.authorize('http', LOAD, headers({ 'admin-key': 'secret' })).who).toBe('restricted-api');
    expect(refusal(() => policy.authorize('grpc', LOAD, headers({ 'admin-key': 'secret' })))[1]).toBe(
      "This protocol is restricted, expecting header 'triton-grpc-protocol-Admin-Key'",
    );
    expect(policy.authorize('grpc', LOAD, headers({ 'triton-grpc-protocol-admin-key': 'secret' })).trusted).toBe(true);
  });

  it('leave the others open', () => {
    expect(policy.authorize('http', INFER, headers({})).who).toBe('anonymous');
  });

  it('stand beside keys: both are needed', () => {
    const both = policyOf([entryOf({ scopes: ['model-repository'] })], [{ apis: ['model-repository'], key: 'k', value: 'v' }]);
    expect(refusal(() => both.authorize('http', LOAD, headers({ 'x-api-key': key })))[1]).toContain('restricted');
    expect(refusal(() => both.authorize('http', LOAD, headers({ k: 'v' })))[0]).toBe('UNAUTHENTICATED');
    expect(both.authorize('http', LOAD, headers({ k: 'v', 'x-api-key': key })).who).toBe('key:ci');
  });
});

describe('management', () => {
  const local = { remoteAddress: '127.0.0.1', host: 'localhost', origin: undefined, headerNames: ['host'] };
  const remote = { ...local, remoteAddress: '10.1.2.3', host: 'models.example' };
  const keyed = policyOf([entryOf({ scopes: ['model-repository'] })]);
  const grant = keyed.authorize('http', LOAD, headers({ 'x-api-key': key }));

  it('without a key it is for direct local callers', () => {
    const open = openAccess();
    const anybody = open.authorize('http', LOAD, headers({}));
    expect(() => open.requireManagement(anybody, local)).not.toThrow();
    expect(refusal(() => open.requireManagement(anybody, remote))[0]).toBe('PERMISSION_DENIED');
  });

  it('with a key it is for callers from anywhere, but not for pages of other origins', () => {
    expect(() => keyed.requireManagement(grant, remote)).not.toThrow();
    expect(refusal(() => keyed.requireManagement(grant, { ...local, origin: 'https://evil.example' }))[1]).toContain('other origins');
    const console = new AccessPolicy({ keys: undefined, restrictedHttp: [], restrictedGrpc: [], corsOrigins: ['https://ops.example'] });
    expect(() => console.requireManagement(grant, { ...local, origin: 'https://ops.example' })).not.toThrow();
    expect(() => console.requireManagement(grant, { ...local, origin: 'https://ops.example.evil' })).toThrow();
  });
});

describe('the table of actions', () => {
  it.each([
    ['GET', '/v2/models/:name/versions/:version/config', 'model-config', false],
    ['POST', '/v2/models/:model/versions/:version(^\\d+$)/infer', 'infer', false],
    ['POST', '/v2/repository/models/:name/load', 'model-repository', true],
    ['POST', '/v2/repository/index', 'model-repository', false],
    ['POST', '/v2/logging', 'logging', true],
    ['GET', '/v2/models/stats', 'statistics', false],
    ['POST', '/v2/systemsharedmemory/region/:name/register', 'shared-memory', true],
  ])('%s %s', (method, pattern, scope, manages) => {
    expect(actionOfRoute(method, pattern)).toMatchObject({ scope, manages });
  });

  it.each([
    ['DELETE', '/v2/models/:name'],
    ['PUT', '/v2/repository/models/:name/load'],
    ['GET', '/v2/models/:name/nosuch'],
    ['GET', '/constructor'],
    ['constructor', ''],
  ])('has no %s %s', (method, pattern) => {
    expect(actionOfRoute(method, pattern)).toBeUndefined();
  });
});
