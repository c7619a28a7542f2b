import { describe, expect, test } from '@jest/globals';
import { keyFileLine, KeyFileError, parseKeyFile, type KeyEntry } from './key-file.js';
import { generateApiKey, hashApiKey, KEY_HASH } from './secret.js';

const HASH = `sha256:${'ab'.repeat(32)}`;
const line = (more: Record<string, unknown> = {}): string => JSON.stringify({ id: 'a', hash: HASH, scopes: ['infer'], ...more });

function faultsOf(text: string): readonly string[] {
  try {
    parseKeyFile(text, 'keys.jsonl');
  } catch (error) {
    if (error instanceof KeyFileError) return error.faults;
    throw error;
  }
  return [];
}

describe('a key', () => {
  test('has 256 random bits, and its hash is what a file takes', () => {
    const [one, two] = [generateApiKey(), generateApiKey()];
    expect(one).toMatch(/^pcl_[\w-]{43}$/);
    expect(one).not.toBe(two);
    expect(hashApiKey(one)).toMatch(KEY_HASH);
    expect(hashApiKey('abc')).toBe('sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});

describe('a key file', () => {
  test('reads what a line says, and what it leaves out', () => {
    const text = `# keys\n\n${line()}\r\n${line({ id: 'b', hash: HASH.replace('ab', 'cd'), models: ['digits*'], quota: { rows_per_second: 2.5 } })}\n`;
    expect(parseKeyFile(text, 'f')).toEqual([
      { id: 'a', hash: HASH, scopes: ['infer'], models: ['*'], quota: {} },
      { id: 'b', hash: HASH.replace('ab', 'cd'), scopes: ['infer'], models: ['digits*'], quota: { rowsPerSecond: 2.5 } },
    ]);
  });

  test('a line that was written is read as it was', () => {
    const entry: KeyEntry = {
      id: 'ci.runner-1',
      hash: HASH,
      scopes: ['infer', 'metadata'],
      models: ['digits*', 'ocr_?'],
      quota: { requestsPerSecond: 10, rowsPerSecond: undefined, inFlight: 3 },
    };
    expect(parseKeyFile(keyFileLine(entry), 'f')).toEqual([entry]);
  });

  test('every fault is found at once, with its line', () => {
    const faults = faultsOf(
      [line({ scopes: ['infre'] }), '{"id":', line({ id: 'x y', quota: { in_flight: 0 } }), line({ modles: [] })].join('\n'),
    );
    expect(faults).toEqual([
      expect.stringMatching(/^keys\.jsonl:1: scopes\.0: expected one of health, .*infer/),
      'keys.jsonl:2: expected one JSON object in this line',
      expect.stringMatching(/^keys\.jsonl:3: id: expected 1 to 64/),
      'keys.jsonl:3: quota.in_flight: expected a number above 0',
      expect.stringMatching(/^keys\.jsonl:4: .*modles/),
    ]);
  });

  test('neither an id nor a key may stand twice', () => {
    expect(faultsOf(`${line()}\n${line()}`)).toEqual([
      "keys.jsonl:2: id 'a' stands in line 1 already",
      "keys.jsonl:2: the key of 'a' stands in line 1 already",
    ]);
  });

  test('a key that was pasted instead of its hash is not repeated by the message', () => {
    const key = generateApiKey();
    expect(faultsOf(line({ hash: key })).join()).not.toContain(key);
    expect(faultsOf(`${key}\n`).join()).not.toContain(key);
  });

  test.each(['null', '[]', '1', '"a"', '{}', '{"__proto__":{"id":"a"}}'])('%s is no key', (text) => {
    expect(faultsOf(text)).not.toEqual([]);
    expect(({} as { id?: string }).id).toBeUndefined();
  });

  test.each([
    ['models', ['../x']],
    ['models', []],
    ['models', ['a/b']],
    ['scopes', []],
    ['scopes', ['__proto__']],
    ['quota', { requests_per_second: '5' }],
    ['quota', { requests_per_second: -1 }],
    ['quota', { in_flight: 1.5 }],
    ['id', 'a\nb'],
  ])('%s %j is refused', (key, value) => {
    expect(faultsOf(line({ [key]: value }))).toHaveLength(1);
  });
});
