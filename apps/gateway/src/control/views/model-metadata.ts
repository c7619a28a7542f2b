/** What clients may know of a model before they call it: the metadata and readiness answers of both protocols. */
import type { ModelCatalog, TensorSpec } from '@paceline/protocol';

export interface TensorMetadata {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
}

export interface ModelMetadata {
  readonly name: string;
  readonly versions: readonly string[];
  readonly platform: string;
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
}

const tensor = ({ name, datatype, shape }: TensorSpec): TensorMetadata => ({ name, datatype, shape });

/**
 * @param version "" = describe the version the server picks and list every ready one; else list only that one.
 * @throws ServingError as {@link ModelCatalog.resolve}.
 */
export function modelMetadata(catalog: ModelCatalog, name: string, version: string): ModelMetadata {
  const model = catalog.resolve(name, version);
  return {
    name: model.name,
    versions: version === '' ? catalog.readyVersions(name) : [model.version],
    platform: model.config.platform !== '' ? model.config.platform : model.config.backend,
    inputs: model.inputs.map(tensor),
    outputs: model.outputs.map(tensor),
  };
}
