/** What the gateway's front ends are built from; the same options serve HTTP control routes and gRPC. */
import type { ModelCatalog, ModelControl } from '@paceline/protocol';
import type { Logger, LogSettings, StatisticsReader, StatisticsRegistry } from '@paceline/telemetry';
import type { AccessLog } from '../access-log/access-log.js';
import type { AccessPolicy } from '../access/access-policy.js';
import { DEFAULT_DATA_PLANE_LIMITS } from '../http/data-plane-limits.js';
import type { InferHandler } from '../infer/infer-service.js';

/** What the server says of itself. The two functions are called per probe, so they must be cheap. */
export interface ServerInfo {
  /** `--id`. */
  readonly name: string;
  readonly version: string;
  /** Protocol extensions that are really served; see {@link SERVED_EXTENSIONS}. */
  readonly extensions: readonly string[];
  /** False only when the process cannot recover by itself. */
  isLive(): boolean;
  /** Whether new requests are welcome: false while models load at start and from the first moment of a drain. */
  isReady(): boolean;
}

/** Extensions of the open inference protocol that Paceline serves, by their names in it. */
export const SERVED_EXTENSIONS: readonly string[] = [
  'classification',
  'model_repository',
  'model_repository(unload_dependents)',
  'schedule_policy',
  'model_configuration',
  'binary_tensor_data',
  'statistics',
];

/** See the flags of the same names. */
export interface GatewayLimits {
  /** Largest HTTP body or gRPC message that is read, in bytes. */
  readonly maxRequestBytes: number;
  /** Request line and headers of HTTP, in bytes. */
  readonly maxHeaderBytes: number;
  readonly maxHeaderCount: number;
  /** Bodies above 64 KiB that are being read or answered, in bytes. */
  readonly maxBufferedBytes: number;
  /** Of each protocol. */
  readonly maxConnections: number;
  /** Calls that one gRPC connection may have open. */
  readonly maxConcurrentStreams: number;
  /** From the first byte of an HTTP request to the end of its headers, and to its last byte. */
  readonly headerTimeoutS: number;
  readonly requestTimeoutS: number;
  /** Without a byte of an unfinished request, or without progress of an unread response. */
  readonly stallTimeoutS: number;
  /** HTTP connections without a request. */
  readonly idleTimeoutS: number;
}

/** 64 MiB a request, as Triton's `--http-max-input-size`. */
export const DEFAULT_LIMITS: GatewayLimits = {
  ...DEFAULT_DATA_PLANE_LIMITS,
  maxRequestBytes: 64 * 1024 * 1024,
  maxConcurrentStreams: 1024,
};

export interface GatewayOptions {
  readonly catalog: ModelCatalog;
  readonly control: ModelControl;
  readonly statistics: StatisticsRegistry;
  /** What clients are shown of statistics, where that is more than this process counts. */
  readonly shownStatistics?: StatisticsReader;
  readonly inferHandler: InferHandler;
  readonly info: ServerInfo;
  readonly limits: { readonly maxRequestBytes: number } & Partial<GatewayLimits>;
  readonly logger: Logger;
  /** A line for each inference request; without it there is none. */
  readonly accessLog?: AccessLog;
  /** Requests have spans. */
  readonly traced?: boolean;
  /** Settings of the server's log, which clients may read and change. */
  readonly logSettings: LogSettings;
  /** Who may do what; without it the data plane is open and management local. */
  readonly access?: AccessPolicy;
}
