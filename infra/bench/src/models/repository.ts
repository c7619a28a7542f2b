/** Writes model repositories for the server under models/; what is there already with the right size stays. */
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MODELS_FOLDER } from '../paths.js';
import type { BenchModel } from './catalog.js';

function configText(model: BenchModel, name: string): string {
  const { batching = '', config = '', instances = 1 } = model;
  const isBatching = model.maxBatchSize > 1 || batching !== '';
  return `name: "${name}"
backend: "${model.simulated === undefined ? 'onnxruntime' : 'simulated'}"
max_batch_size: ${model.maxBatchSize}
input [ { name: "${model.inputName}" data_type: TYPE_FP32 dims: [ ${model.inputShape.join(', ')} ] } ]
output [ { name: "${model.outputName}" data_type: TYPE_FP32 dims: [ ${model.outputElements} ] } ]
instance_group [ { count: ${instances} kind: KIND_CPU } ]
${isBatching ? `dynamic_batching { ${batching} }\n` : ''}${config}${simulationText(model)}`;
}

function simulationText({ simulated }: BenchModel): string {
  if (simulated === undefined) return '';
  const parameter = (key: string, value: number): string => `parameters { key: "${key}" value { string_value: "${value}" } }\n`;
  return parameter('simulated_alpha_ms', simulated.alphaMs) + parameter('simulated_beta_ms', simulated.betaMs);
}

function writeModel(folder: string, name: string, model: BenchModel, file: Uint8Array): void {
  const version = join(folder, name, '1');
  mkdirSync(version, { recursive: true });
  writeFileSync(join(folder, name, 'config.pbtxt'), configText(model, name));
  if (model.simulated !== undefined) return;
  const path = join(version, 'model.onnx');
  if (statSync(path, { throwIfNoEntry: false })?.size !== file.length) writeFileSync(path, file);
}

/** Where the ONNX file of `model` lies in the repository of `scenario`. */
export function modelFile(scenario: string, model: BenchModel): string {
  return join(MODELS_FOLDER, scenario, model.name, '1', 'model.onnx');
}

/** @returns the folder of a repository that holds exactly `models`. */
export function writeRepository(scenario: string, models: readonly BenchModel[]): string {
  const folder = join(MODELS_FOLDER, scenario);
  for (const model of models) writeModel(folder, model.name, model, model.file());
  return folder;
}

/** @returns the folder of a repository with `count` copies of `model`, named `<model>_000` and so on. */
export function writeCopies(scenario: string, model: BenchModel, count: number): string {
  const folder = join(MODELS_FOLDER, scenario);
  const file = model.file();
  for (let i = 0; i < count; i++) writeModel(folder, copyName(model, i), model, file);
  return folder;
}

export function copyName(model: BenchModel, index: number): string {
  return `${model.name}_${String(index).padStart(3, '0')}`;
}
