// Who may join: only a process whose secret and number of partitions are those of the processes that are there.
import { expect, test } from '@jest/globals';
import type { CommonSettings, Member } from '@paceline/protocol';
import { commonSettings, disagreement } from './common-settings.js';

const SECRET = new TextEncoder().encode('sixteen characters');
const member = (common?: CommonSettings): Member => ({
  role: 'worker',
  id: 'aaaaaaaaaaaaaaaa',
  address: '127.0.0.1:1',
  draining: false,
  ...(common && { common }),
});

test('the mark of a secret is the same everywhere, another one for each cluster, and nothing of the secret', async () => {
  const settings = { partitions: 4, prefix: 'a' };
  const own = await commonSettings(settings, SECRET);
  expect(await commonSettings(settings, SECRET)).toEqual(own);
  expect(own.secretMark).toMatch(/^[0-9a-f]{16}$/);
  expect((await commonSettings({ ...settings, prefix: 'b' }, SECRET)).secretMark).not.toBe(own.secretMark);
  expect(await commonSettings(settings, undefined)).toEqual({ partitions: 4, secretMark: '' });
});

test('equal settings are welcome, and so is the first process and one that says nothing of itself', () => {
  const own = { partitions: 4, secretMark: 'ab' };
  expect(disagreement(own, [])).toBeUndefined();
  expect(disagreement(own, [member(), member(own)])).toBeUndefined();
});

test.each([
  ['cd', 4, 'another cluster secret is set here, but worker aaaaaaaaaaaaaaaa, which is in the cluster already, has one'],
  ['', 4, 'another cluster secret is set here, but worker aaaaaaaaaaaaaaaa, which is in the cluster already, has none'],
  ['ab', 8, '--partitions=4: worker aaaaaaaaaaaaaaaa, which is in the cluster already, has 8'],
])('mark %j and %i partitions of another: %s', (secretMark, partitions, text) => {
  expect(
    disagreement({ partitions: 4, secretMark: 'ab' }, [member({ partitions: 4, secretMark: 'ab' }), member({ partitions, secretMark })]),
  ).toContain(text);
});

test('no secret where the others have one is said as that', () => {
  expect(disagreement({ partitions: 4, secretMark: '' }, [member({ partitions: 4, secretMark: 'ab' })])).toContain(
    'no cluster secret is set here',
  );
});
