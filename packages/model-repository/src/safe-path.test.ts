// Names that try to leave their folder are refused before the file system is asked, and links that do are refused after.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { safeExistingFile, safeJoin, safeSegment } from './safe-path.js';

const ATTACKS = [
  '', '.', '..', '../x', 'a/../../x', '/etc/passwd', '\\\\host\\x', '..\\x', 'a\\..\\..\\x', 'C:\\x', 'C:/x', 'a\u0000b',
  'a\nb', 'a//b', 'a/./b', '\u007f', 'x'.repeat(256), `a/${'é'.repeat(128)}`,
]; // prettier-ignore

describe('safeSegment', () => {
  test.each(ATTACKS.map((name) => [JSON.stringify(name.slice(0, 20)), name]))('refuses %s', (_shown, name) => {
    expect(() => safeSegment(name, 'model name')).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', reason: 'unsafe_name' }));
  });

  test.each(['a', 'a.b', 'a b', '..a', '...', '%2e%2e', '$(id)', '-rf', 'é'.repeat(127)])('keeps %s', (name) => {
    expect(safeSegment(name, 'model name')).toBe(name);
  });
});

describe('safeJoin', () => {
  test.each(ATTACKS.filter((name) => name !== 'a/./b').map((name) => [JSON.stringify(name.slice(0, 20)), name]))(
    'refuses %s',
    (_shown, name) => {
      if (name === '.') return expect(safeJoin('/r/m', name, 'file')).toBe('/r/m');
      return expect(() => safeJoin('/r/m', name, 'file')).toThrow(/^file "/);
    },
  );

  test('joins segments', () => {
    expect(safeJoin('/r/m', 'a/b.txt', 'file')).toBe('/r/m/a/b.txt');
    expect(safeJoin('/r/m', './b.txt', 'file')).toBe('/r/m/b.txt');
  });
});

describe('safeExistingFile', () => {
  let repository: TemporaryRepository;
  let folder: string;

  beforeEach(() => {
    repository = temporaryModelRepository();
    folder = join(repository.root, 'm');
    mkdirSync(folder);
    mkdirSync(join(repository.root, 'm2'));
    writeFileSync(join(repository.root, 'm2', 'secret'), '');
  });
  afterEach(() => repository.remove());

  test('follows links inside the folder and none out of it, the neighbour with the same beginning included', async () => {
    writeFileSync(join(folder, 'real'), '');
    symlinkSync('real', join(folder, 'inside'));
    symlinkSync('../m2/secret', join(folder, 'outside'));
    symlinkSync('../m2', join(folder, 'door'));
    expect(await safeExistingFile(folder, 'inside', 'file')).toBe(join(folder, 'real'));
    await expect(safeExistingFile(folder, 'outside', 'file')).rejects.toThrow('file "outside" leads out of the folder of the model');
    await expect(safeExistingFile(folder, 'door/secret', 'file')).rejects.toThrow(/leads out/);
    expect(await safeExistingFile(folder, 'missing', 'file')).toBeUndefined();
  });

  test('says the same of a way out whether its end exists or not', async () => {
    const message = (name: string) => safeExistingFile(folder, name, 'file').then(() => '', (error: Error) => error.message.replace(name, '')); // prettier-ignore
    expect(await message('../m2/secret')).toBe(await message('../m2/nothing'));
  });
});
