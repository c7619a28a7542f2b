/**
 * Which scope opens which route and which gRPC method: the one table of both protocols. A route or method that is not in
 * it stays shut for everybody once keys or restricted APIs are in use, so that a new one cannot be forgotten.
 */
import type { KeyScope } from '@paceline/config';

export interface Action {
  /** As the audit calls it, e.g. `model.load`. */
  readonly name: string;
  readonly scope: KeyScope;
  /** Changes what is served or how: audited, and without a key only for direct callers on this machine. */
  readonly manages: boolean;
  /** Open without a key, whatever is configured. */
  readonly alwaysOpen: boolean;
}

const action = (name: string, scope: KeyScope, more: { manages?: boolean; alwaysOpen?: boolean } = {}): Action => ({
  name,
  scope,
  manages: more.manages ?? false,
  alwaysOpen: more.alwaysOpen ?? false,
});

export const INFER = action('model.infer', 'infer');
const LIVE = action('server.live', 'health', { alwaysOpen: true });
const READY = action('server.ready', 'health');
const MODEL_READY = action('model.ready', 'health');
const SERVER_METADATA = action('server.metadata', 'metadata');
const MODEL_METADATA = action('model.metadata', 'metadata');
const CONFIG = action('model.config', 'model-config');
const STATISTICS = action('model.statistics', 'statistics');
const INDEX = action('repository.index', 'model-repository');
const LOAD = action('model.load', 'model-repository', { manages: true });
const UNLOAD = action('model.unload', 'model-repository', { manages: true });
const LOG_READ = action('log.settings.read', 'logging');
const LOG_CHANGE = action('log.settings.change', 'logging', { manages: true });
const TRACE_READ = action('trace.settings.read', 'trace');
const TRACE_CHANGE = action('trace.settings.change', 'trace', { manages: true });
const SHARED_MEMORY_READ = action('shared-memory.status', 'shared-memory');
const SHARED_MEMORY_CHANGE = action('shared-memory.change', 'shared-memory', { manages: true });
/** GET /metrics, on its own port. */
export const METRICS = action('metrics.read', 'metrics');

/** What follows `/v2/models/{name}` or `/v2/models/{name}/versions/{version}`. */
const OF_MODEL: Readonly<Record<string, Action>> = {
  'GET ': MODEL_METADATA,
  'GET /ready': MODEL_READY,
  'GET /config': CONFIG,
  'GET /stats': STATISTICS,
  'POST /infer': INFER,
  'POST /generate': INFER,
  'POST /generate_stream': INFER,
  'GET /trace/setting': TRACE_READ,
  'POST /trace/setting': TRACE_CHANGE,
};

const OF_SERVER: Readonly<Record<string, Action>> = {
  'GET /v2': SERVER_METADATA,
  'GET /v2/health/live': LIVE,
  'GET /v2/health/ready': READY,
  'GET /v2/models/stats': STATISTICS,
  'POST /v2/repository/index': INDEX,
  'POST /v2/repository/models/:/load': LOAD,
  'POST /v2/repository/models/:/unload': UNLOAD,
  'GET /v2/logging': LOG_READ,
  'POST /v2/logging': LOG_CHANGE,
  'GET /v2/logging/modules': LOG_READ,
  'POST /v2/logging/modules': LOG_CHANGE,
  'GET /v2/trace/setting': TRACE_READ,
  'POST /v2/trace/setting': TRACE_CHANGE,
};

/**
 * @param pattern the route's own pattern, never the path of a request: a path has many spellings
 * @returns undefined for a route that nobody put into the table
 */
export function actionOfRoute(method: string, pattern: string): Action | undefined {
  // Parameters may have any name and a regular expression behind it.
  const plain = pattern.replace(/:[A-Za-z]+(?:\([^/]*\))?/g, ':');
  const server = `${method} ${plain}`;
  if (Object.hasOwn(OF_SERVER, server)) return OF_SERVER[server];
  const rest = /^\/v2\/models\/:(?:\/versions\/:)?((?:\/.*)?)$/.exec(plain)?.[1];
  const model = `${method} ${rest ?? '-'}`;
  if (Object.hasOwn(OF_MODEL, model)) return OF_MODEL[model];
  const memory = /^\/v2\/(?:system|cuda)sharedmemory(?:\/region\/:)?\/(status|register|unregister)$/.exec(plain)?.[1];
  if (memory === undefined) return undefined;
  return memory === 'status' ? SHARED_MEMORY_READ : SHARED_MEMORY_CHANGE;
}

const OF_METHOD: Readonly<Record<string, Action>> = {
  serverLive: LIVE,
  serverReady: READY,
  modelReady: MODEL_READY,
  serverMetadata: SERVER_METADATA,
  modelMetadata: MODEL_METADATA,
  modelConfig: CONFIG,
  modelStatistics: STATISTICS,
  modelInfer: INFER,
  modelStreamInfer: INFER,
  repositoryIndex: INDEX,
  repositoryModelLoad: LOAD,
  repositoryModelUnload: UNLOAD,
  logSettings: LOG_CHANGE,
  traceSetting: TRACE_CHANGE,
  systemSharedMemoryStatus: SHARED_MEMORY_READ,
  systemSharedMemoryRegister: SHARED_MEMORY_CHANGE,
  systemSharedMemoryUnregister: SHARED_MEMORY_CHANGE,
  cudaSharedMemoryStatus: SHARED_MEMORY_READ,
  cudaSharedMemoryRegister: SHARED_MEMORY_CHANGE,
  cudaSharedMemoryUnregister: SHARED_MEMORY_CHANGE,
  // grpc.health.v1, whose methods tell whether the server is ready.
  check: READY,
  watch: READY,
};

/** @param method the method's name, first letter lower case */
export function actionOfMethod(method: string): Action | undefined {
  return Object.hasOwn(OF_METHOD, method) ? OF_METHOD[method] : undefined;
}
