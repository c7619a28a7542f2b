// Model repositories on disk: what is a model, a version, a model file; what is ignored or refused, and why.
import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { identityModel, temporaryModelRepository, writeModelRepository, type TemporaryRepository } from '@paceline/testkit';
import { LocalModelRepository, type RepositoryModel } from './repository.js';

const onnx = identityModel({ datatype: 'FP32', dims: [4] });

let disk: TemporaryRepository;
let repository: LocalModelRepository;

beforeEach(() => {
  disk = temporaryModelRepository([
    { name: 'a', config: 'max_batch_size: 8', versions: { 1: onnx, 10: onnx, 9: onnx }, files: { 'labels.txt': 'cat\r\ndog\n\nfish\n' } },
  ]);
  repository = new LocalModelRepository({ roots: [disk.root] });
});
afterEach(() => disk.remove());

async function read(name: string): Promise<RepositoryModel> {
  const model = await repository.read(name);
  if (model === undefined) throw new Error(`no model ${name}`);
  return model;
}

describe('listing', () => {
  test('gives folders, and says what is one level too high', async () => {
    writeFileSync(join(disk.root, 'model.onnx'), onnx);
    writeFileSync(join(disk.root, 'README.md'), '');
    mkdirSync(join(disk.root, '.git'));
    symlinkSync('a', join(disk.root, 'linked'));
    symlinkSync('nowhere', join(disk.root, 'broken-link'));
    expect(await repository.list()).toEqual({
      models: ['a', 'linked'],
      ignored: [{ entry: 'model.onnx', reason: 'it is one level too high: a repository holds model folders' }],
    });
    expect(repository.names()).toEqual(['a', 'linked']);
  });

  test('of a repository that is not there fails by name', async () => {
    const missing = new LocalModelRepository({ roots: [join(disk.root, 'missing')] });
    await expect(missing.list()).rejects.toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining('missing') });
    expect(missing.names()).toEqual([]);
  });
});

describe('reading a model', () => {
  test('gives versions by number, files, configuration', async () => {
    const model = await read('a');
    expect(model).toMatchObject({ name: 'a', versions: ['1', '9', '10'], files: ['model.onnx'], ignored: [] });
    expect(model.configText?.config.maxBatchSize).toBe(8);
    expect(model.configText?.file).toBe('a/config.pbtxt');
  });

  test('records why a folder is no version', async () => {
    writeModelRepository(disk.root, [
      {
        name: 'a',
        versions: { '007': onnx, v2: onnx, '99999999999999999999': onnx, warmup: {}, initial_state: {}, configs: {}, 0: onnx },
        files: { 'model.onnx': onnx },
      },
    ]);
    const { versions, ignored } = await read('a');
    expect(versions).toEqual(['0', '1', '9', '10']);
    expect(ignored).toEqual([
      { entry: 'a/007', reason: 'the name of a version folder must not begin with 0: rename it to 7' },
      { entry: 'a/99999999999999999999', reason: 'the number of a version must fit into 64 bits' },
      { entry: 'a/model.onnx', reason: 'a model file belongs in a version folder: a/1/model.onnx' },
      { entry: 'a/v2', reason: 'the name of a version folder must be a number' },
    ]);
  });

  test('is silent about folders of other uses, unless they look like a version or hold a model file', async () => {
    const file = { 'x.json': '' };
    writeModelRepository(disk.root, [
      {
        name: 'a',
        versions: { samples: file, docs: {}, 'v1.2-notes': file, '1.0': file, '3_old': file, V4: file, exported: onnx, vocab2: file },
      },
    ]);
    const { ignored } = await read('a');
    expect(ignored.map(({ entry }) => entry)).toEqual(['a/1.0', 'a/3_old', 'a/V4', 'a/exported', 'a/v1.2-notes']);
  });

  test('of a name that no folder has, or that is a path', async () => {
    expect(await repository.read('nosuch')).toBeUndefined();
    await expect(repository.read('../a')).rejects.toMatchObject({ reason: 'unsafe_name' });
    await expect(repository.read('a/1')).rejects.toMatchObject({ reason: 'unsafe_name' });
  });

  test('in two repositories is refused, the same repository twice is not', async () => {
    const other = temporaryModelRepository([{ name: 'a' }]);
    const both = new LocalModelRepository({ roots: [disk.root, other.root] });
    await expect(both.read('a')).rejects.toThrow('model appears in two or more repositories');
    expect((await both.list()).models).toEqual(['a']);
    other.remove();
    expect(await new LocalModelRepository({ roots: [disk.root, `${disk.root}/`] }).read('a')).toMatchObject({ name: 'a' });
  });

  test('with a broken configuration names the place; ignoring it works', async () => {
    writeModelRepository(disk.root, [{ name: 'a', config: 'max_batch_size: x' }]);
    await expect(repository.read('a')).rejects.toThrow("a/config.pbtxt:1:17: max_batch_size: expected an integer, found 'x'");
    expect(await repository.read('a', { ignoreConfig: true })).toMatchObject({ configText: undefined });
  });

  test('takes a named configuration where the model has it', async () => {
    writeModelRepository(disk.root, [
      { name: 'a', files: { 'configs/small.pbtxt': 'max_batch_size: 2' } },
      { name: 'b', config: 'max_batch_size: 3' },
    ]);
    const named = new LocalModelRepository({ roots: [disk.root], configName: 'small' });
    expect((await named.read('a'))?.configText).toMatchObject({ file: 'a/configs/small.pbtxt', config: { maxBatchSize: 2 } });
    expect((await named.read('b'))?.configText?.config.maxBatchSize).toBe(3);
    expect(() => new LocalModelRepository({ roots: [], configName: '../x' })).toThrow(/model config name/);
  });
});

describe('model files', () => {
  test('file, folder with external data, link to elsewhere', async () => {
    const elsewhere = temporaryModelRepository([{ name: 'package', files: { 'x.onnx': onnx } }]);
    writeModelRepository(disk.root, [{ name: 'b', versions: { 1: { 'model.onnx/model.onnx': onnx, 'rec.onnx': onnx }, 2: {} } }]);
    symlinkSync(join(elsewhere.root, 'package', 'x.onnx'), join(disk.root, 'b', '2', 'model.onnx'));
    const b = await read('b');
    expect(await repository.modelFile(b, '1', 'model.onnx')).toBe(join(b.folder, '1', 'model.onnx', 'model.onnx'));
    expect(await repository.modelFile(b, '1', 'rec.onnx')).toBe(join(b.folder, '1', 'rec.onnx'));
    const linked = await repository.modelFile(b, '2', 'model.onnx');
    expect((await repository.describe(b, '2', linked)).inputs[0]?.name).toBe('INPUT0');
    elsewhere.remove();
  });

  test('that are missing say what the folder holds', async () => {
    writeModelRepository(disk.root, [{ name: 'b', versions: { 1: { 'weights.onnx': onnx }, 2: {} } }]);
    const b = await read('b');
    await expect(repository.modelFile(b, '1', 'model.onnx')).rejects.toMatchObject({
      code: 'INTERNAL',
      message: 'failed to stat file b/1/model.onnx; the folder b/1 holds weights.onnx',
    });
    await expect(repository.modelFile(b, '2', 'model.onnx')).rejects.toThrow('the folder b/2 holds nothing');
  });

  test.each(['../../secret.onnx', '/etc/passwd', 'a\\b.onnx', '..'])('named %s are refused', async (name) => {
    await expect(repository.modelFile(await read('a'), '1', name)).rejects.toThrow(/^default_model_filename "/);
  });
});

describe('label files', () => {
  test('give one label a line', async () => {
    expect(await repository.labels(await read('a'), 'labels.txt')).toEqual(['cat', 'dog', '', 'fish']);
  });

  test('that are missing or elsewhere are refused', async () => {
    const a = await read('a');
    await expect(repository.labels(a, 'nosuch.txt')).rejects.toThrow(
      "label file 'nosuch.txt' of model 'a' does not exist in the model's folder",
    );
    await expect(repository.labels(a, '../b/labels.txt')).rejects.toThrow(/label_filename/);
    symlinkSync('/etc/hostname', join(disk.root, 'a', 'link.txt'));
    await expect(repository.labels(a, 'link.txt')).rejects.toThrow(/leads out of the folder/);
  });
});

describe('fingerprints', () => {
  test('change with the files of their version and with the configuration, and with nothing else', async () => {
    const a = await read('a');
    const before = await Promise.all(a.versions.map((version) => repository.versionFingerprint(a, version, ['labels.txt'])));
    writeFileSync(join(a.folder, '9', 'model.onnx'), identityModel({ datatype: 'INT32', dims: [5, 5] }));
    const after = await Promise.all(a.versions.map((version) => repository.versionFingerprint(a, version, ['labels.txt'])));
    expect(after.map((print, i) => print === before[i])).toEqual([true, false, true]);
    utimesSync(join(a.folder, 'labels.txt'), 1, 1);
    expect(await repository.versionFingerprint(a, '1', ['labels.txt'])).not.toBe(after[0]);
    writeModelRepository(disk.root, [{ name: 'a', config: 'max_batch_size: 16' }]);
    expect((await read('a')).configFingerprint).not.toBe(a.configFingerprint);
  });
});

describe('observing', () => {
  test('finds what changed, by version and apart from the versions', async () => {
    writeModelRepository(disk.root, [{ name: 'o', config: 'max_batch_size: 8', versions: { 1: onnx, 2: onnx } }]);
    const look = async () => {
      const model = (await repository.observe()).get('o');
      if (model === undefined) throw new Error('not seen');
      return model;
    };
    const first = await look();
    expect(await look()).toEqual(first);
    expect([...first.versions.keys()]).toEqual(['1', '2']);
    expect(Math.abs(Date.now() - first.changedMs)).toBeLessThan(60_000);
    writeFileSync(join(disk.root, 'o', '2', 'more.bin'), 'x');
    const second = await look();
    expect([second.rest, second.versions.get('1')]).toEqual([first.rest, first.versions.get('1')]);
    expect(second.versions.get('2')).not.toBe(first.versions.get('2'));
    writeFileSync(join(disk.root, 'o', 'config.pbtxt'), 'max_batch_size: 16');
    expect((await look()).rest).not.toBe(second.rest);
  });

  test('of a repository that cannot be read fails, so that nobody takes its models for gone', async () => {
    const missing = new LocalModelRepository({ roots: [disk.root, join(disk.root, 'missing')] });
    await expect(missing.observe()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('sees a model in two repositories change when it is in one again', async () => {
    const other = temporaryModelRepository([{ name: 'a', versions: { 1: onnx } }]);
    const both = new LocalModelRepository({ roots: [disk.root, other.root] });
    const before = (await both.observe()).get('a')?.rest;
    rmSync(join(other.root, 'a'), { recursive: true });
    expect((await both.observe()).get('a')?.rest).not.toBe(before);
    other.remove();
  });
});
