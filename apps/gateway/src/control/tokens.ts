/** Injection tokens of the gateway's ports. */
export const MODEL_CATALOG = Symbol('ModelCatalog');
export const MODEL_CONTROL = Symbol('ModelControl');
export const STATISTICS = Symbol('StatisticsRegistry');
export const INFER_HANDLER = Symbol('InferHandler');
export const SERVER_INFO = Symbol('ServerInfo');
export const GATEWAY_LOGGER = Symbol('Logger');
export const GATEWAY_LIMITS = Symbol('GatewayLimits');
export const LOG_SETTINGS = Symbol('LogSettings');
