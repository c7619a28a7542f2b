/**
 * Every unary method of inference.GRPCInferenceService beside ModelInfer: thin translations between generated messages and
 * the ports and views that the HTTP control routes use too. A method returns its response or throws a ServingError.
 */
import { create, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import { ServingError, type LoadParameter } from '@paceline/protocol';
import {
  type GRPCInferenceService,
  ModelConfigResponseSchema,
  ModelMetadataResponseSchema,
  ModelReadyResponseSchema,
  ModelStatisticsResponseSchema,
  RepositoryIndexResponseSchema,
  RepositoryModelLoadResponseSchema,
  RepositoryModelUnloadResponseSchema,
  ServerLiveResponseSchema,
  ServerMetadataResponseSchema,
  ServerReadyResponseSchema,
  type ModelRepositoryParameter,
} from '@paceline/protocol/grpc';
import type { Grant } from '../access/grant.js';
import type { GatewayOptions } from '../control/gateway.options.js';
import { readLoadParameters } from '../control/load-parameters.js';
import { modelMetadata, type TensorMetadata } from '../control/views/model-metadata.js';
import { modelStatistics, type ModelStatisticsView, type StatisticDuration } from '../control/views/model-statistics.js';
import { applyLogSettings } from './log-settings.js';

type Methods = (typeof GRPCInferenceService)['method'];
type UnaryName = { [K in keyof Methods]: Methods[K]['methodKind'] extends 'unary' ? K : never }[keyof Methods];
type Handler<K extends keyof Methods> = (
  request: MessageShape<Methods[K]['input']>,
  grant: Grant,
) => MessageShape<Methods[K]['output']> | Promise<MessageShape<Methods[K]['output']>>;

/** The methods served through generated messages; {@link UNSERVED} names those that are not. */
export type ControlHandlers = { readonly [K in Exclude<UnaryName, 'modelInfer' | (typeof UNSERVED)[number]>]: Handler<K> };

/** Answered with UNIMPLEMENTED. */
export const UNSERVED = [
  'systemSharedMemoryStatus',
  'systemSharedMemoryRegister',
  'systemSharedMemoryUnregister',
  'cudaSharedMemoryStatus',
  'cudaSharedMemoryRegister',
  'cudaSharedMemoryUnregister',
  'traceSetting',
] as const;

export function controlHandlers({
  catalog,
  control,
  statistics,
  shownStatistics = statistics,
  info,
  logSettings,
}: GatewayOptions): ControlHandlers {
  return {
    serverLive: () => create(ServerLiveResponseSchema, { live: info.isLive() }),
    serverReady: () => create(ServerReadyResponseSchema, { ready: info.isReady() }),
    modelReady: ({ name, version }) =>
      create(ModelReadyResponseSchema, { ready: isReady(() => catalog.isHealthy(catalog.resolve(name, version))) }),
    serverMetadata: () =>
      create(ServerMetadataResponseSchema, { name: info.name, version: info.version, extensions: [...info.extensions] }),
    modelMetadata: ({ name, version }) => {
      const metadata = modelMetadata(catalog, name, version);
      return create(ModelMetadataResponseSchema, {
        name: metadata.name,
        versions: [...metadata.versions],
        platform: metadata.platform,
        inputs: metadata.inputs.map(tensorMetadata),
        outputs: metadata.outputs.map(tensorMetadata),
      });
    },
    logSettings: (request) => applyLogSettings(logSettings, request),
    modelConfig: ({ name, version }) => create(ModelConfigResponseSchema, { config: catalog.resolve(name, version).config }),
    modelStatistics: ({ name, version }, grant) => {
      const views = modelStatistics(catalog, shownStatistics, name, version).filter((view) => grant.mayUse(view.name));
      return create(ModelStatisticsResponseSchema, { modelStats: views.map(statisticsMessage) });
    },
    repositoryIndex: ({ repositoryName, ready }, grant) => {
      refuseRepositoryName(repositoryName);
      const models = control.index(ready).filter(({ name }) => grant.mayUse(name));
      return create(RepositoryIndexResponseSchema, { models: models.map((entry) => ({ ...entry })) });
    },
    repositoryModelLoad: async ({ repositoryName, modelName, parameters }) => {
      refuseRepositoryName(repositoryName);
      await control.load(modelName, readLoadParameters(choices(parameters), grpcLoadValues));
      return create(RepositoryModelLoadResponseSchema);
    },
    repositoryModelUnload: async ({ repositoryName, modelName, parameters }) => {
      refuseRepositoryName(repositoryName);
      await control.unload(modelName, { unloadDependents: unloadDependents(parameters) });
      return create(RepositoryModelUnloadResponseSchema);
    },
  };
}

const invalid = (message: string): never => {
  throw new ServingError('INVALID_ARGUMENT', message, { reason: 'invalid_load_parameter' });
};

/** A model that is unknown or not ready is not ready; a version that is no version is the client's mistake. */
function isReady(look: () => boolean): boolean {
  try {
    return look();
  } catch (error) {
    if (
      error instanceof ServingError &&
      (error.code === 'NOT_FOUND' || error.code === 'UNAVAILABLE' || error.message.startsWith('Request for unknown model'))
    )
      return false;
    throw error;
  }
}

function refuseRepositoryName(name: string): void {
  if (name !== '')
    throw new ServingError('UNIMPLEMENTED', "'repository_name' specification is not supported", { reason: 'repository_name' });
}

type Choice = ModelRepositoryParameter['parameterChoice'];

function* choices(parameters: { readonly [key: string]: ModelRepositoryParameter }): Iterable<readonly [string, Choice]> {
  for (const [key, { parameterChoice }] of Object.entries(parameters)) yield [key, parameterChoice];
}

const grpcLoadValues = {
  config: (key: string, value: unknown): LoadParameter => {
    const choice = value as Choice;
    return choice.case === 'stringParam' ? choice.value : invalid(`invalid value type for load parameter '${key}', expected string_param.`);
  },
  file: (key: string, value: unknown): LoadParameter => {
    const choice = value as Choice;
    return choice.case === 'bytesParam' ? choice.value : invalid(`invalid value type for load parameter '${key}', expected bytes_param.`);
  },
};

function unloadDependents(parameters: { readonly [key: string]: ModelRepositoryParameter }): boolean {
  const choice = parameters['unload_dependents']?.parameterChoice;
  if (choice === undefined) return false;
  return choice.case === 'boolParam' ? choice.value : invalid("invalid value type for 'unload_dependents' parameter, expected bool_param.");
}

const tensorMetadata = ({ name, datatype, shape }: TensorMetadata): { name: string; datatype: string; shape: bigint[] } => ({
  name,
  datatype,
  shape: shape.map(BigInt),
});

const duration = ({ count, ns }: StatisticDuration): { count: bigint; ns: bigint } => ({ count: BigInt(count), ns: BigInt(ns) });

type StatisticsInit = NonNullable<MessageInitShape<typeof ModelStatisticsResponseSchema>['modelStats']>[number];

function statisticsMessage(view: ModelStatisticsView): StatisticsInit {
  const stats = view.inference_stats;
  return {
    name: view.name,
    version: view.version,
    lastInference: BigInt(view.last_inference),
    inferenceCount: BigInt(view.inference_count),
    executionCount: BigInt(view.execution_count),
    inferenceStats: {
      success: duration(stats.success),
      fail: duration(stats.fail),
      queue: duration(stats.queue),
      computeInput: duration(stats.compute_input),
      computeInfer: duration(stats.compute_infer),
      computeOutput: duration(stats.compute_output),
      cacheHit: duration(stats.cache_hit),
      cacheMiss: duration(stats.cache_miss),
    },
    batchStats: view.batch_stats.map((size) => ({
      batchSize: BigInt(size.batch_size),
      computeInput: duration(size.compute_input),
      computeInfer: duration(size.compute_infer),
      computeOutput: duration(size.compute_output),
    })),
    memoryUsage: view.memory_usage.map(({ type, id, byte_size }) => ({ type, id: BigInt(id), byteSize: BigInt(byte_size) })),
  };
}
