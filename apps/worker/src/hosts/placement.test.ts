import { expect, test } from '@jest/globals';
import { choosePlacement } from './placement.js';

const limits = { dedicatedHosts: 2, poolHosts: 2 };
const small = { small: true, isolated: false };

test.each([
  ['a large model has its own host', { small: false, isolated: false }, 9, [], { host: 'dedicated', reason: 'large' }],
  ['so has one that took a host down', { small: true, isolated: true }, 9, [], { host: 'dedicated', reason: 'isolated' }],
  ['and any while there are few', small, 1, [], { host: 'dedicated', reason: 'few_hosts' }],
  ['then the pool is filled', small, 2, [{ instances: 1, sameModel: 0 }], { host: 'new_pool_host', reason: 'pool_not_full' }],
  [
    'then the emptiest host is shared',
    small,
    2,
    [
      { instances: 3, sameModel: 0 },
      { instances: 2, sameModel: 0 },
    ],
    { host: 'pool', index: 1, reason: 'least_loaded' },
  ],
  [
    'but instances of one model are kept apart',
    small,
    2,
    [
      { instances: 3, sameModel: 0 },
      { instances: 2, sameModel: 1 },
    ],
    { host: 'pool', index: 0, reason: 'least_loaded' },
  ],
] as const)('%s', (_, request, dedicated, pool, expected) => {
  expect(choosePlacement(request, dedicated, pool, limits)).toEqual(expected);
});
