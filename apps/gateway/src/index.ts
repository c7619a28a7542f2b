export * from './access/index.js';
export { createGatewayApp, type GatewayAppOptions } from './control/gateway.app.js';
export { DEFAULT_LIMITS, SERVED_EXTENSIONS, type GatewayLimits, type GatewayOptions, type ServerInfo } from './control/gateway.options.js';
export { GATEWAY_LIMITS, GATEWAY_LOGGER, INFER_HANDLER, MODEL_CATALOG, MODEL_CONTROL, SERVER_INFO, STATISTICS } from './control/tokens.js';
export { createGrpcServer, type GrpcServer, type GrpcServerOptions } from './grpc/grpc.server.js';
export { AccessLog } from './access-log/access-log.js';
export { createMetricsServer, type MetricsServer } from './metrics/metrics.server.js';
export { ByteBudget } from './infer/byte-budget.js';
export {
  DEFAULT_INFER_LIMITS,
  InferService,
  type InferCall,
  type InferHandler,
  type InferLimits,
  type InferServiceOptions,
} from './infer/infer-service.js';
export * from './http/index.js';
export { createGateway, type Gateway, type GatewayPorts } from './start/gateway.js';
export type { Addresses } from './start/front-doors.js';
