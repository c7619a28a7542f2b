// The model source over real folders: what it reports of good, broken and changed models, and that a load override replaces the file.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LocalModelRepository } from '@paceline/model-repository';
import { ModelInstanceGroup_Kind as Kind } from '@paceline/protocol/model-config';
import {
  dynamicInt8Model,
  identityModel,
  scaleModel,
  temporaryModelRepository,
  writeModelRepository,
  type TemporaryRepository,
} from '@paceline/testkit';
import type { SourceModel, SourceVersion } from './model-source.js';
import { RepositoryModelSource, type RepositorySourceOptions } from './repository-source.js';

const onnx = identityModel({ datatype: 'FP32', dims: [4] });
const scale = (factor: number): Uint8Array => scaleModel({ dims: [4], factor });
const IO =
  'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\noutput [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n';

let disk: TemporaryRepository;
let source: RepositoryModelSource;
beforeEach(() => {
  disk = temporaryModelRepository();
  source = new RepositoryModelSource(new LocalModelRepository({ roots: [disk.root] }));
});
afterEach(() => disk.remove());

async function read(name: string, override?: string): Promise<SourceModel> {
  const model = await source.read(name, override === undefined ? {} : { config: override });
  if (model === undefined) throw new Error(`no model ${name}`);
  return model;
}

function only(model: SourceModel): SourceVersion {
  expect(model.versions).toHaveLength(1);
  return model.versions[0] as SourceVersion;
}

function errorOf(version: SourceVersion): string {
  return version.ok ? 'no error' : version.error.message;
}

describe('instance groups', () => {
  test.each<[string, RepositorySourceOptions, unknown]>([
    ['no GPU', {}, { kind: Kind.CPU, count: 2, gpus: [] }],
    ['GPUs of this machine', { gpus: (backend) => (backend === 'onnxruntime' ? [0, 1] : []) }, { kind: Kind.GPU, count: 1, gpus: [0, 1] }],
    ['GPUs for another backend', { gpus: (backend) => (backend === 'simulated' ? [0] : []) }, { kind: Kind.CPU, count: 2, gpus: [] }],
    ['workers that decide', { gpus: 'by-worker' }, { kind: Kind.AUTO, count: 0, gpus: [] }],
  ])('without a word, with %s', async (_, options, group) => {
    writeModelRepository(disk.root, [{ name: 'm', versions: { 1: onnx } }]);
    source = new RepositoryModelSource(new LocalModelRepository({ roots: [disk.root] }), options);
    const version = only(await read('m'));
    expect(version.ok && version.config.instanceGroup).toMatchObject([group]);
  });
});

describe('reading', () => {
  test('a model without a configuration', async () => {
    writeModelRepository(disk.root, [{ name: 'auto', versions: { 1: onnx } }]);
    expect(only(await read('auto'))).toMatchObject({
      ok: true,
      version: '1',
      modelPath: join(disk.root, 'auto', '1', 'model.onnx'),
      config: { name: 'auto', maxBatchSize: 4 },
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [-1, 4], optional: false }],
    });
  });

  test('versions by policy, absent and ignored ones as warnings', async () => {
    writeModelRepository(disk.root, [
      {
        name: 'v',
        config: `max_batch_size: 8\n${IO}version_policy { specific { versions: [ 1, 3, 7 ] } }\noptimization { eager_batching: true }`,
        versions: { 1: scale(2), 2: scale(3), 3: scale(5), '04': onnx },
      },
    ]);
    const model = await read('v');
    expect(model.versions.map(({ version, ok }) => [version, ok])).toEqual([['1', true], ['3', true]]); // prettier-ignore
    expect(model.warnings).toEqual([
      "'optimization.eager_batching' has no effect for model 'v': the next batch is always prepared while one runs [v/config.pbtxt:5:16 optimization.eager_batching]",
      "'v/04' is ignored: the name of a version folder must not begin with 0: rename it to 4",
      "version 7 is specified for model 'v', but the version directory is not present",
    ]);
  });

  test('a version whose answers depend on batch-mates says so, to a load and to a check', async () => {
    const io = IO.replace('input [', 'dynamic_batching { }\ninput [');
    const bytes = dynamicInt8Model({ rows: 4, columns: 4, weights: new Int8Array(16).fill(3) });
    writeModelRepository(disk.root, [{ name: 'q', config: `max_batch_size: 8\n${io}`, versions: { 1: bytes, 2: scale(2) } }]);
    const q = only(await read('q'));
    expect(q.ok && q.remarks).toEqual([]);
    writeModelRepository(disk.root, [{ name: 'q', versions: { 3: bytes } }]);
    const remark = expect.stringMatching(
      /^model 'q' quantises activations over the whole batch \(DynamicQuantizeLinear\).* \[q\/config.pbtxt:2:1 dynamic_batching\]$/,
    );
    const newest = only(await read('q'));
    expect(newest.ok && newest.remarks).toEqual([remark]);
    const { errors, warnings } = await source.inspect('q');
    expect([errors, warnings.map(({ message }) => message)]).toEqual([[], [remark]]);
  });

  test('labels of outputs', async () => {
    const config = `max_batch_size: 8\n${IO.replace(/\} \]\n$/, 'label_filename: "l.txt" } ]\n')}`;
    writeModelRepository(disk.root, [{ name: 'l', config, versions: { 1: onnx }, files: { 'l.txt': 'a\nb\n' } }]);
    const version = only(await read('l'));
    expect(version.ok && version.labels.get('OUTPUT0')).toEqual(['a', 'b']);
    writeModelRepository(disk.root, [{ name: 'l', config: config.replace('l.txt', 'nosuch.txt') }]);
    expect(errorOf(only(await read('l')))).toBe("label file 'nosuch.txt' of model 'l' does not exist in the model's folder");
  });

  test('nothing where there is no such model', async () => {
    expect(await source.read('nosuch', {})).toBeUndefined();
  });
});

describe('warmup', () => {
  const sample = (name: string, content: string): string =>
    `{ name: "${name}" batch_size: 2 count: 3 inputs { key: "INPUT0" value: { data_type: TYPE_FP32 dims: [ 4 ] ${content} } } }`;
  const config = `max_batch_size: 8\n${IO}model_warmup [ ${sample('zero', 'zero_data: true')}, ${sample('file', 'input_data_file: "row.raw"')} ]`;
  const row = new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer);

  test('samples hold what the configuration says', async () => {
    writeModelRepository(disk.root, [{ name: 'w', config, versions: { 1: onnx }, files: { 'warmup/row.raw': row } }]);
    const version = only(await read('w'));
    expect(version.ok && version.warmup).toEqual([
      { name: 'zero', count: 3, rows: 2, inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [2, 4], data: new Uint8Array(32) }] },
      {
        name: 'file',
        count: 3,
        rows: 2,
        inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [2, 4], data: Uint8Array.of(...row, ...row) }],
      },
    ]);
    // Other data is another model: it has to be loaded anew.
    writeModelRepository(disk.root, [{ name: 'w', files: { 'warmup/row.raw': row.map((byte) => byte + 1) } }]);
    expect(only(await read('w')).fingerprint).not.toBe(version.fingerprint);
  });

  test.each([
    ['row.raw', undefined, "warmup data file 'w/warmup/row.raw' does not exist"],
    ['row.raw', row.subarray(1), "'w/warmup/row.raw': expected 16 bytes, found 15"],
    ['row.raw', new Uint8Array(2000), "warmup data file 'w/warmup/row.raw' has 2000 bytes, at most 1024 fit"],
    ['../config.pbtxt', row, 'input_data_file ".." is not a name'],
  ])('a file %s of %s is refused by sample, input and file', async (file, content, message) => {
    const files: Record<string, Uint8Array> = content === undefined ? {} : { 'warmup/row.raw': content };
    writeModelRepository(disk.root, [{ name: 'w', config: config.replace('row.raw', file), versions: { 1: onnx }, files }]);
    expect(errorOf(only(await read('w')))).toMatch(`warmup sample 'file' of model 'w', input 'INPUT0': ${message}`);
  });
});

describe('faults', () => {
  test('of the text alone throw, all together, each with its place and a hint', async () => {
    writeModelRepository(disk.root, [{ name: 'bad', config: 'name: "other"\nmax_batch_size: -1\n', versions: { 1: onnx } }]);
    await expect(source.read('bad', {})).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message:
        "expected 'name' to be 'bad', the name of the model's folder, but it is 'other' (rename the folder, or leave the name out) [bad/config.pbtxt:1:1 name]; " +
        "'max_batch_size' must be non-negative value for bad (found -1) [bad/config.pbtxt:2:1 max_batch_size]",
    });
  });

  test('against the model file belong to their version', async () => {
    writeModelRepository(disk.root, [
      { name: 'bad', config: `max_batch_size: 8\n${IO.replace('dims: [ 4 ]', 'dims: [ 5 ]')}`, versions: { 1: onnx } },
    ]);
    expect(errorOf(only(await read('bad')))).toMatch(
      /^model 'bad', tensor 'INPUT0': the model expects 2 dimensions .*\(set dims: \[ 4 \]\) \[bad\/config.pbtxt:2:47 input\[0\].dims\]$/,
    );
  });

  test('of one version leave the others alone', async () => {
    writeModelRepository(disk.root, [
      { name: 'v', config: `max_batch_size: 8\n${IO}version_policy { all { } }`, versions: { 1: onnx, 2: Uint8Array.of(1, 2, 3), 3: {} } },
    ]);
    const { versions } = await read('v');
    expect(versions.map(({ ok }) => ok)).toEqual([true, false, false]);
    expect(errorOf(versions[1] as SourceVersion)).toMatch(/^Load model from v\/2\/model.onnx failed:Protobuf parsing failed/);
    expect(errorOf(versions[2] as SourceVersion)).toBe('failed to stat file v/3/model.onnx; the folder v/3 holds nothing');
  });

  test('a backend that is not served is refused before its file is read', async () => {
    writeModelRepository(disk.root, [{ name: 'py', config: 'backend: "python"', versions: { 1: { 'model.py': '' } } }]);
    expect(errorOf(only(await read('py')))).toMatch(
      /^unable to find backend library for backend 'python'.* \(this server has the backends onnxruntime and simulated\)/,
    );
  });

  test('never show where the repository lies', async () => {
    writeModelRepository(disk.root, [
      { name: 'a', versions: { 1: Uint8Array.of(1) } },
      { name: 'b', config: 'x', versions: { 1: onnx } },
    ]);
    const texts = [errorOf(only(await read('a'))), await source.read('b', {}).then(() => '', (error: Error) => error.message)]; // prettier-ignore
    for (const text of texts) expect(text).not.toContain(disk.root);
  });
});

describe('a configuration given with the load', () => {
  test('replaces the file, even a broken one, and has no places', async () => {
    writeModelRepository(disk.root, [{ name: 'm', config: 'broken {', versions: { 1: scale(2), 2: scale(3) } }]);
    const model = await read('m', '{"max_batch_size": 2, "version_policy": {"all": {}}}');
    expect(model.versions.map((version) => version.ok && version.config.maxBatchSize)).toEqual([2, 2]);
    await expect(source.read('m', { config: '{"max_batch_size": -2}' })).rejects.toThrow(
      "'max_batch_size' must be non-negative value for m (found -2) [max_batch_size]",
    );
  });

  test.each(['x', '', '{"foo": 1}', '[]'])('%j is refused', async (text) => {
    writeModelRepository(disk.root, [{ name: 'm', versions: { 1: onnx } }]);
    await expect(source.read('m', { config: text })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining("'config' is no model configuration in JSON"),
    });
  });
});

describe('fingerprints', () => {
  test('are equal for what has not changed, and differ by file, configuration and override', async () => {
    writeModelRepository(disk.root, [{ name: 'm', config: 'max_batch_size: 8', versions: { 1: onnx } }]);
    const first = only(await read('m')).fingerprint;
    expect(only(await read('m')).fingerprint).toBe(first);
    const override = only(await read('m', '{"max_batch_size": 8}')).fingerprint;
    expect(override).not.toBe(first);
    expect(only(await read('m', '{"max_batch_size": 8}')).fingerprint).toBe(override);
    writeFileSync(join(disk.root, 'm', 'config.pbtxt'), 'max_batch_size: 16');
    const second = only(await read('m')).fingerprint;
    expect(second).not.toBe(first);
    writeFileSync(join(disk.root, 'm', '1', 'model.onnx'), scale(4));
    expect(only(await read('m')).fingerprint).not.toBe(second);
  });
});
