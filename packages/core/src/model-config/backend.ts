/**
 * Fills in who runs a model: name, backend, platform and model file name, from the configuration and from the names of
 * the files in the version folders. ONNX Runtime and the simulated accelerator are served; the others are known by name
 * so that the refusal says what the model needs.
 */
import type { ModelConfig } from '@paceline/protocol/model-config';
import type { IssueList } from './issue.js';

export const ONNX_BACKEND = 'onnxruntime';
/** An accelerator that only takes time; its models have no file. */
export const SIMULATED_BACKEND = 'simulated';
export const ONNX_PLATFORM = 'onnxruntime_onnx';

interface KnownBackend {
  readonly backend: string;
  readonly platform: string;
  readonly filename: string;
}

/** Backend, legacy platform name and default file name that belong together. */
const KNOWN: readonly KnownBackend[] = [
  { backend: ONNX_BACKEND, platform: ONNX_PLATFORM, filename: 'model.onnx' },
  { backend: SIMULATED_BACKEND, platform: '', filename: '' },
  { backend: 'tensorrt', platform: 'tensorrt_plan', filename: 'model.plan' },
  { backend: 'pytorch', platform: 'pytorch_libtorch', filename: 'model.pt' },
  { backend: 'torch_aoti', platform: '', filename: 'model.pt2' },
  { backend: 'openvino', platform: '', filename: 'model.xml' },
  { backend: 'python', platform: '', filename: 'model.py' },
  { backend: 'tensorflow', platform: 'tensorflow_graphdef', filename: 'model.graphdef' },
  { backend: 'tensorflow', platform: 'tensorflow_savedmodel', filename: 'model.savedmodel' },
];

function guess(defaultFilename: string, files: readonly string[]): KnownBackend | undefined {
  if (defaultFilename.endsWith('.onnx')) return KNOWN[0];
  const known = KNOWN.find(({ filename }) => filename !== '' && files.includes(filename));
  if (known) return known;
  const own = files.map((file) => /^model\.([a-z0-9_]+)$/.exec(file)?.[1]).find((suffix) => suffix !== undefined);
  return own === undefined ? undefined : { backend: own, platform: '', filename: `model.${own}` };
}

/**
 * @param config changed in place
 * @param files names found in the version folders, any version
 */
export function fillBackend(config: ModelConfig, model: string, files: readonly string[], issues: IssueList): void {
  if (config.name === '') config.name = model;
  else if (config.name !== model) {
    issues.add('name', `expected 'name' to be '${model}', the name of the model's folder, but it is '${config.name}'`,
      'rename the folder, or leave the name out'); // prettier-ignore
    // The folder's name is the model's; what follows is about that model.
    config.name = model;
  }
  const byPlatform = KNOWN.find(({ platform }) => platform !== '' && platform === config.platform);
  if (config.platform === 'ensemble') return;
  if (config.platform !== '' && byPlatform === undefined) {
    issues.add('platform', `unexpected platform type '${config.platform}' for ${model}`, `write platform: "${ONNX_PLATFORM}"`);
    return;
  }
  if (config.backend !== '' && byPlatform !== undefined && byPlatform.backend !== config.backend) {
    issues.add('backend', `unexpected 'platform' and 'backend' pair, got:${config.platform}, ${config.backend}`);
    return;
  }
  const named = config.backend !== '' ? KNOWN.find(({ backend }) => backend === config.backend) : undefined;
  const known = byPlatform ?? named ?? (config.backend === '' ? guess(config.defaultModelFilename, files) : undefined);
  if (config.backend === '' && known === undefined) {
    const found = files.length === 0 ? 'no files' : files.join(', ');
    issues.add('', `must specify 'platform' or 'backend' for '${model}'`,
      `the version folders hold ${found}; a file named model.onnx would say it by itself`); // prettier-ignore
    return;
  }
  if (config.backend === '') config.backend = known?.backend ?? '';
  if (config.platform === '') config.platform = known?.platform ?? '';
  if (config.defaultModelFilename === '') config.defaultModelFilename = known?.filename ?? '';
}

/** Refuses what no backend of this server runs. */
export function checkBackend(config: ModelConfig, issues: IssueList): void {
  if (config.backend === ONNX_BACKEND || config.backend === SIMULATED_BACKEND || config.platform === 'ensemble') return;
  issues.add(
    'backend',
    `unable to find backend library for backend '${config.backend}', try specifying runtime on the model configuration.`,
    `this server has the backends ${ONNX_BACKEND} and ${SIMULATED_BACKEND}`,
  );
}
