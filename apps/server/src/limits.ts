/** From the flags to what each part of the gateway is told: one limit, one flag, the same number everywhere. */
import type { ServeOptions } from '@paceline/config';
import type { GatewayLimits, InferLimits } from '@paceline/gateway';

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

/**
 * The bound that a lane puts on queueing where its model names none: a moment behind the gateway's timer, whose error
 * says more.
 */
export function laneQueueTimeoutUs({ limits }: ServeOptions): number {
  return limits.requestTimeoutMs * 1000 + 1_000_000;
}
