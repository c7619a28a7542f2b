import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

interface Tally {
  readonly failed: number;
  begin(name: string, isSuite: boolean): void;
  read(text: string): void;
  end(succeeded: boolean): boolean;
  summary(): string;
}

const { createTally } = (await import(fileURLToPath(new URL('../setup/tally.mjs', import.meta.url)))) as { createTally: () => Tally };

test('suites count by test, other checks as one; the sum is the last line', () => {
  const tally = createTally();
  tally.begin('lint', false);
  tally.read('Tests: 7 passed, 7 total\n');
  expect(tally.end(true)).toBe(true);
  tally.begin('unit', true);
  tally.read('@paceline/a:test: Tests:       2 skipped, 34 passed, 36 total\nx\n@paceline/b:test: Tes');
  tally.read('ts:       1 failed, 1 passed, 2 total\n');
  expect(tally.end(false)).toBe(false);
  expect(tally.failed).toBe(1);
  expect(tally.summary().split('\n').at(-1)).toBe('36 passed, 1 failed');
});

test('a suite that breaks without a failed test is a failure', () => {
  const tally = createTally();
  tally.begin('unit', true);
  tally.read('Tests:       3 passed, 3 total\n');
  expect(tally.end(false)).toBe(false);
  expect(tally.summary().split('\n').at(-1)).toBe('3 passed, 1 failed');
});
