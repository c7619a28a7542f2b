// `paceline check` over real folders: all faults at once, each with its place; the exit code; what flags change.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  identityModel,
  temporaryModelRepository,
  writeModelRepository,
  type RepositoryModelFiles,
  type TemporaryRepository,
} from '@paceline/testkit';
import { runCheck } from './run-check.js';

const onnx = identityModel({ datatype: 'FP32', dims: [4] });
const IO =
  'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\noutput [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n';

interface Found {
  readonly model: string | null;
  readonly file: string | null;
  readonly line: number | null;
  readonly column: number | null;
  readonly field: string;
  readonly message: string;
  readonly expected: string | null;
  readonly found: string | null;
  readonly hint: string | null;
}

let disk: TemporaryRepository;
beforeEach(() => {
  disk = temporaryModelRepository();
});
afterEach(() => disk.remove());

async function check(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const code = await runCheck(argv, {}, { out: (text) => (out += text), err: (text) => (err += text), colour: false, width: 100 });
  return { code, out, err };
}

async function found(model: RepositoryModelFiles, ...flags: string[]): Promise<{ code: number; errors: Found[]; warnings: Found[] }> {
  writeModelRepository(disk.root, [model]);
  const { code, out } = await check(disk.root, '--json', ...flags);
  return { code, ...(JSON.parse(out) as { errors: Found[]; warnings: Found[] }) };
}

const lines = (findings: readonly Found[]): unknown[] => findings.map(({ field, line, column }) => [field, line, column]);

describe('errors', () => {
  test('of a simulated accelerator, which needs no file', async () => {
    const config = `backend: "simulated"\nmax_batch_size: 8\n${IO}parameters { key: "simulated_alpha_ms" value { string_value: "VALUE" } }`;
    const model = { name: 'm', versions: { 1: {} } };
    expect(await found({ ...model, config: config.replace('VALUE', '40') })).toMatchObject({ code: 0, errors: [], warnings: [] });
    const { code, errors } = await found({ ...model, config: config.replace('VALUE', 'fast') });
    expect(code).toBe(1);
    expect(errors.map(({ line, message }) => [line, message])).toEqual([
      [5, "parameter 'simulated_alpha_ms' of model 'm' must be a number of milliseconds from 0 to 3600000, got 'fast'"],
    ]);
  });

  test('of the text come all at once, with what was expected, found and meant', async () => {
    const config =
      'max_batch_size: "eight"\ninput [ { data_type: TYPE_FP33 } ]\nmax_bach_size: 4\ninstance_group [ { count: ${count} } ]\n';
    const { code, errors } = await found({ name: 'm', config, versions: { 1: onnx } });
    expect(code).toBe(1);
    expect(lines(errors)).toEqual([['max_batch_size', 1, 17], ['input[0].data_type', 2, 22], ['', 3, 1], ['instance_group[0].count', 4, 27]]); // prettier-ignore
    expect(errors[0]).toEqual({
      model: 'm',
      file: join(disk.root, 'm', 'config.pbtxt'),
      line: 1,
      column: 17,
      field: 'max_batch_size',
      message: `expected an integer, found '"eight"'`,
      expected: 'an integer',
      found: `'"eight"'`,
      hint: 'write it without quotes',
    });
    expect(errors[3]?.hint).toBe('${count} is a place-holder that was never filled in');
  });

  test('of fields, scheduling, tensors, instances and session options come together', async () => {
    const config = `max_batch_size: 8
${IO.replace('dims: [ 4 ]', 'dims: [ 5 ]')}
dynamic_batching { preferred_batch_size: [ 16 ] }
response_cache { enable: true }
instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]`;
    const { errors } = await found({ name: 'm', config, versions: { 1: onnx, 2: onnx } });
    expect(errors.map(({ field }) => field).sort()).toEqual(['dynamic_batching.preferred_batch_size[0]', 'input[0].dims', 'instance_group[0].kind', 'response_cache.enable']); // prettier-ignore
    const options = `max_batch_size: 8 parameters { key: "intra_op_thread_count" value { string_value: "x" } }\noptimization { graph { level: 7 } }`;
    const { errors: later } = await found({ name: 'm', config: options });
    expect(lines(later)).toEqual([['parameters["intra_op_thread_count"]', 1, 30], ['optimization.graph.level', 2, 24]]); // prettier-ignore
  });

  test('the same fault of two versions is one, and a fault of one version names it', async () => {
    const { errors } = await found({
      name: 'm',
      config: 'version_policy { all { } }',
      versions: { 1: onnx, 2: Uint8Array.of(1), 3: onnx },
    });
    expect(errors.map(({ message }) => message)).toEqual([expect.stringMatching(/^Load model from m\/2\/model.onnx failed/)]);
  });

  test('a repository that is not there, and a model in two', async () => {
    writeModelRepository(disk.root, [{ name: 'a/m', versions: { 1: onnx } }, { name: 'b/m', versions: { 1: onnx } }]); // prettier-ignore
    const { code, out } = await check(join(disk.root, 'a'), join(disk.root, 'b'), join(disk.root, 'nosuch'));
    expect(code).toBe(1);
    expect(out).toContain('model appears in two or more repositories');
    expect(out).toContain(`failed to read model repository '${join(disk.root, 'nosuch')}'`);
  });
});

describe('warnings', () => {
  test('of hints and ignored entries leave the exit code alone', async () => {
    writeFileSync(join(disk.root, 'stray.onnx'), onnx);
    const config = `max_batch_size: 8\noptimization { eager_batching: true }\nparameters { key: "gpu_mem_limit" value { string_value: "1" } }`;
    const { code, errors, warnings } = await found({
      name: 'm',
      config,
      versions: { 1: onnx, '02': onnx },
      files: { 'samples/a.json': '{}' },
    });
    expect([code, errors]).toEqual([0, []]);
    expect(warnings.map(({ model, line, message }) => [model, line, message.slice(0, 30)])).toEqual([
      [null, null, "'stray.onnx' is ignored: it is"],
      ['m', 2, "'optimization.eager_batching' "],
      ['m', null, "'m/02' is ignored: the name of"],
      ['m', 3, "parameter 'gpu_mem_limit' of m"],
    ]);
  });
});

describe('what this machine cannot run', () => {
  const config = `backend: "simulated"\n${IO}instance_group [ { kind: KIND_GPU gpus: [ 1 ] } ]`;
  const model = { name: 'm', config, versions: { 1: {} } };

  test('is remarked: another machine may', async () => {
    const { code, errors, warnings } = await found(model);
    expect([code, errors]).toEqual([0, []]);
    expect(warnings.map(({ field, line, message }) => [field, line, message])).toEqual([
      [
        'instance_group[0]',
        4,
        "instance group 'm_0' of model 'm' asks for GPU 1, and this worker simulates none; start it with --simulated-gpus, or write kind: KIND_CPU",
      ],
    ]);
  });

  test('is nothing to say of a machine that has it', async () => {
    expect(await found(model, '--simulated-gpus=2')).toEqual({ ok: true, models: ['m'], code: 0, errors: [], warnings: [] });
  });

  test('GPU options are judged as on a machine with one', async () => {
    const limit = 'parameters { key: "gpu_mem_limit" value { string_value: "1" } }';
    const { code, errors } = await found({ name: 'm', config: `instance_group [ { kind: KIND_GPU } ]\n${limit}`, versions: { 1: onnx } });
    expect([code, lines(errors)]).toEqual([1, [['parameters["gpu_mem_limit"]', 2, 12]]]);
  });
});

describe('arguments', () => {
  test('flags of serve decide what is completed', async () => {
    expect((await found({ name: 'm', versions: { 1: onnx } })).code).toBe(0);
    const { code, errors } = await found({ name: 'm' }, '--disable-auto-complete-config');
    expect([code, errors[0]?.message]).toEqual([1, "model 'm' has no config.pbtxt, and configurations are not completed from model files"]);
  });

  test('the folder of one model is that model alone', async () => {
    writeModelRepository(disk.root, [{ name: 'm', versions: { 1: onnx } }, { name: 'bad', config: 'x', versions: { 1: onnx } }]); // prettier-ignore
    expect(await check(join(disk.root, 'm'))).toMatchObject({ code: 0, out: 'ok  m\n\n1 model: 0 errors, 0 warnings\n' });
    expect((await check(join(disk.root, 'bad'))).code).toBe(1);
  });

  test('wrong flags are errors; without a directory only they are checked', async () => {
    expect(await check('--http-prot=1')).toMatchObject({ code: 1, err: expect.stringContaining('did you mean --http-port') });
    expect(await check()).toMatchObject({ code: 0, out: expect.stringContaining('The flags are right.') });
    expect((await check('--help')).out).toContain('Usage: paceline check');
  });
});

test('the text shows the line with a caret below the place, and wraps', async () => {
  mkdirSync(join(disk.root, 'empty'));
  writeModelRepository(disk.root, [{ name: 'm', config: 'max_batch_size: 8\n\tinput [ { dims: [ x ] } ]\n', versions: { 1: onnx } }]);
  const { out } = await check(disk.root);
  expect(out).toContain('    2 | \tinput [ { dims: [ x ] } ]\n      | \t                  ^\n');
  expect(out).toMatch(/^ {2}error {2}input\[0\]\.dims\[0\] {2}\S*m\/config\.pbtxt:2:20$/m);
  expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThan(200);
  expect(out.trimEnd().split('\n').at(-1)).toBe('2 models: 3 errors, 0 warnings');
});
