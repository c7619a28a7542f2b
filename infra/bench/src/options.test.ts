// The command line: defaults, the separator that package managers leave in, and clear refusals.
import { describe, expect, test } from '@jest/globals';
import { parseOptions, SCENARIO_NAMES } from './options.js';

describe('parseOptions', () => {
  test('everything, three rounds, by default', () => {
    expect(parseOptions([])).toMatchObject({ only: SCENARIO_NAMES, rounds: 3, quick: false, connections: 64 });
  });

  test('skips the separator and reads a choice', () => {
    expect(parseOptions(['--', '--only', 'mlp,tiny', '--rounds', '5', '--quick'])).toMatchObject({
      only: ['mlp', 'tiny'],
      rounds: 5,
      quick: true,
    });
  });

  test('help', () => {
    expect(parseOptions(['--help'])).toBeUndefined();
  });

  test('names the flag, what was expected and what was found', () => {
    expect(() => parseOptions(['--only', 'mpl'])).toThrow(/--only.*mlp.*"mpl"/);
    expect(() => parseOptions(['--rounds', 'many'])).toThrow(/--rounds.*whole number.*"many"/);
    expect(() => parseOptions(['--nonsense'])).toThrow(/nonsense/);
  });
});
