/** From the flags to what each part of the gateway is told: one limit, one flag, the same number everywhere. */
import type { ServeOptions } from '@paceline/config';
import type { GatewayLimits } from '../control/gateway.options.js';
import type { InferLimits } from '../infer/infer-service.js';

export function inferLimits({ limits }: ServeOptions): InferLimits {
  return {
    requestTimeoutUs: limits.requestTimeoutMs * 1000,
    maxUnanswered: limits.maxUnansweredRequests,
    maxUnansweredPerModel: limits.maxUnansweredRequestsPerModel,
    maxUnansweredBytes: limits.maxUnansweredBytes,
  };
}

export function gatewayLimits({ http, grpc, limits }: ServeOptions): GatewayLimits {
  return {
    maxRequestBytes: http.maxInputBytes,
    maxHeaderBytes: http.maxHeaderBytes,
    maxHeaderCount: http.maxHeaderCount,
    maxBufferedBytes: limits.maxBufferedBytes,
    maxConnections: limits.maxConnections,
    maxConcurrentStreams: grpc.maxConcurrentStreams,
    headerTimeoutS: http.headerTimeoutSecs,
    requestTimeoutS: http.bodyTimeoutSecs,
    stallTimeoutS: http.stallTimeoutSecs,
    idleTimeoutS: http.keepAliveTimeoutSecs,
  };
}
