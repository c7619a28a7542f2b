// Files that come with a load request: where they may lie, how much they may be, and that nothing of them is left.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LocalModelRepository } from '@paceline/model-repository';
import { identityModel, temporaryModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { RepositoryModelSource } from './repository-source.js';
import { layOutFiles } from './uploaded-files.js';

const bytes = (text: string): Uint8Array => Buffer.from(text);
const left = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('paceline-model-'));

describe('the folder', () => {
  test('holds the files for this user alone, until it is removed', async () => {
    const { root, remove } = await layOutFiles('m', new Map([['1/model.onnx', bytes('x')], ['labels.txt', bytes('a')]])); // prettier-ignore
    expect(readFileSync(join(root, 'm', '1', 'model.onnx'), 'utf8')).toBe('x');
    expect([root, join(root, 'm', 'labels.txt')].map((path) => statSync(path).mode & 0o077)).toEqual([0, 0]);
    await remove();
    expect(existsSync(root)).toBe(false);
  });

  test.each(['../x', '/etc/passwd', '1/../../x', 'a\\b', '', '1/\0'])('refuses the path %j before it writes anything', async (path) => {
    const before = left();
    await expect(layOutFiles('m', new Map([['1/ok', bytes('x')], [path, bytes('x')]]))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'unsafe_name' }); // prettier-ignore
    expect(left()).toEqual(before);
  });

  test('is bounded in bytes and files, and gone when the files do not fit each other', async () => {
    const before = left();
    const two = new Map([['1/a', bytes('xx')], ['1/b', bytes('xx')]]); // prettier-ignore
    await expect(layOutFiles('m', two, { maxBytes: 3, maxFiles: 9 })).rejects.toMatchObject({
      httpStatus: 413,
      message: "the load request for 'm' brings 4 bytes of files, at most 3 are taken",
    });
    await expect(layOutFiles('m', two, { maxBytes: 9, maxFiles: 1 })).rejects.toThrow('brings 2 files, at most 1 are taken');
    await expect(layOutFiles('m', new Map([['a', bytes('x')], ['a/b', bytes('x')]]))).rejects.toThrow('could not be stored'); // prettier-ignore
    expect(left()).toEqual(before);
  });
});

describe('a model of such files', () => {
  let disk: TemporaryRepository;
  let source: RepositoryModelSource;
  beforeEach(() => {
    disk = temporaryModelRepository([{ name: 'm', config: 'broken {', versions: { 1: bytes('x') } }]);
    source = new RepositoryModelSource(new LocalModelRepository({ roots: [disk.root] }));
  });
  afterEach(() => disk.remove());

  const config = '{"max_batch_size": 2, "backend": "onnxruntime"}';
  const onnx = identityModel({ datatype: 'FP32', dims: [4] });

  test('is what was given and nothing of the repository, and says when it is no longer needed', async () => {
    const before = left();
    const model = await source.read('m', { config, files: new Map([['7/model.onnx', onnx]]) });
    expect(model?.versions.map((version) => [version.version, version.ok])).toEqual([['7', true]]);
    await model?.release?.();
    expect(left()).toEqual(before);
  });

  test('may have a name that no repository knows', async () => {
    const model = await source.read('new', { config, files: new Map([['1/model.onnx', onnx]]) });
    expect(model?.versions[0]?.ok).toBe(true);
    await model?.release?.();
  });

  test('leaves nothing when its configuration is wrong', async () => {
    const before = left();
    await expect(source.read('m', { config: '{"max_batch_size": -2}', files: new Map([['7/model.onnx', onnx]]) })).rejects.toThrow(
      /max_batch_size/,
    );
    expect(left()).toEqual(before);
  });
});
