export { TestAuthority, type TestCertificate } from './tls/authority.js';
export {
  startRedisCluster,
  startRedisSentinel,
  type RedisClusterGroup,
  type RedisSentinelGroup,
  type StartRedisClusterOptions,
} from './redis/groups.js';
export { freePort, startRedis, type RedisServer, type RedisTlsFiles, type StartRedisOptions } from './redis/server.js';
export { codeOf, isInRepository, readPage, readRepositoryFile, tablesOf, type PageTable } from './docs/page.js';
export { startOtlpCollector, type CollectedSpan, type OtlpCollector } from './otlp/collector.js';
export { writeFaultyHost, type HostFaults } from './hosts/faulty-host.js';
export {
  ONNX_TYPES,
  onnxModel,
  type OnnxAttribute,
  type OnnxConstant,
  type OnnxGraph,
  type OnnxModelOptions,
  type OnnxNode,
  type OnnxValue,
} from './onnx/encode.js';
export {
  addSubModel,
  dynamicInt8Model,
  gatherModel,
  identityModel,
  matmulModel,
  optionalInputModel,
  scaleModel,
  slowModel,
  type ModelShape,
  type TypedModelShape,
} from './onnx/models.js';
export { temporaryModelRepository, writeModelRepository, type RepositoryModelFiles, type TemporaryRepository } from './repository/write.js';
