// The example models are what a first start shows: each is accepted as it lies there, and each sample fits its model.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { LocalModelRepository } from '@paceline/model-repository';
import { RepositoryModelSource, type SourceVersion } from '@paceline/scheduler';
import { EXAMPLE_REPOSITORY } from './example-repository.js';

const LINK_SCRIPT = fileURLToPath(new URL('../scripts/link-example-models.mjs', import.meta.url));
const MODELS = ['breast_cancer', 'digits', 'ocr_direction', 'ocr_recognition', 'silero_vad'];

interface SampleBody {
  readonly inputs: readonly {
    readonly name: string;
    readonly datatype: string;
    readonly shape: readonly number[];
    readonly data: readonly number[];
  }[];
  readonly outputs: readonly { readonly name: string }[];
}

const link = (): string => execFileSync(process.execPath, [LINK_SCRIPT], { encoding: 'utf8' });
const source = new RepositoryModelSource(new LocalModelRepository({ roots: [EXAMPLE_REPOSITORY] }));

async function onlyVersion(name: string): Promise<SourceVersion & { readonly ok: true }> {
  const version = (await source.read(name, {}))?.versions[0];
  if (version === undefined) throw new Error(`${name} has no version`);
  if (!version.ok) throw version.error;
  return version;
}

function samplesOf(name: string): [file: string, body: SampleBody][] {
  const folder = join(EXAMPLE_REPOSITORY, name, 'samples');
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : [];
  return files.map((file) => [file, JSON.parse(readFileSync(join(folder, file), 'utf8')) as SampleBody]);
}

describe('example models', () => {
  beforeAll(() => {
    link();
  });

  test('linking a second time has nothing left to do', () => {
    expect(link()).toBe('');
  });

  test('there are five', () => {
    expect(source.names()).toEqual(MODELS);
  });

  test.each(MODELS)('%s is accepted, and its samples fit its inputs and outputs', async (name) => {
    const { inputs, outputs } = await onlyVersion(name);
    for (const [file, body] of samplesOf(name)) {
      expect(body.inputs.map((input) => input.name).sort()).toEqual(inputs.map((input) => input.name).sort());
      for (const { name: inputName, datatype, shape, data } of body.inputs) {
        const spec = inputs.find((input) => input.name === inputName);
        expect([file, inputName, datatype]).toEqual([file, inputName, spec?.datatype]);
        expect(shape).toEqual(spec?.shape.map((dim, axis) => (dim < 0 ? shape[axis] : dim)));
        expect(data).toHaveLength(shape.reduce((product, dim) => product * dim, 1));
      }
      for (const output of body.outputs) expect(outputs.map((spec) => spec.name)).toContain(output.name);
    }
  });

  test('classes have names', async () => {
    expect((await onlyVersion('digits')).labels.get('probabilities')?.[7]).toBe('seven');
    expect((await onlyVersion('breast_cancer')).labels.get('probabilities')).toEqual(['malignant', 'benign']);
    expect((await onlyVersion('ocr_direction')).labels.get('softmax_0.tmp_0')).toEqual(['0', '180']);
  });
});
