import { expect, test } from '@jest/globals';
import { choosePlacement, poolSizeOf } from './placement.js';

const limits = { dedicatedHosts: 2, poolHosts: 2 };
const small = { size: 'small', isolated: false } as const;

test.each([
  ['a large model has its own host', { size: undefined, isolated: false }, 9, [], { host: 'dedicated', reason: 'large' }],
  ['so has one that took a host down', { size: 'small', isolated: true }, 9, [], { host: 'dedicated', reason: 'isolated' }],
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

test('what may share, and with whom, goes by the size of its files', () => {
  const limits = { tinyBytes: 10, smallBytes: 100 };
  expect([0, 10, 11, 100, 101].map((bytes) => poolSizeOf(bytes, limits))).toEqual(['tiny', 'tiny', 'small', 'small', undefined]);
});
