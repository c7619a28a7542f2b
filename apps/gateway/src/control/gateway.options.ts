/** What the gateway's front ends are built from; the same options serve HTTP control routes and gRPC. */
import type { ModelCatalog, ModelControl } from '@paceline/protocol';
import type { Logger, LogSettings, StatisticsRegistry } from '@paceline/telemetry';
import type { AccessLog } from '../access-log/access-log.js';
import type { AccessPolicy } from '../access/access-policy.js';
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

export interface GatewayLimits {
  /** Largest HTTP body or gRPC message that is read, in bytes. */
  readonly maxRequestBytes: number;
}

/** 64 MiB, as Triton's `--http-max-input-size`. */
export const DEFAULT_LIMITS: GatewayLimits = { maxRequestBytes: 64 * 1024 * 1024 };

export interface GatewayOptions {
  readonly catalog: ModelCatalog;
  readonly control: ModelControl;
  readonly statistics: StatisticsRegistry;
  readonly inferHandler: InferHandler;
  readonly info: ServerInfo;
  readonly limits: GatewayLimits;
  readonly logger: Logger;
  /** A line for each inference request; without it there is none. */
  readonly accessLog?: AccessLog;
  /** Settings of the server's log, which clients may read and change. */
  readonly logSettings: LogSettings;
  /** Who may do what; without it the data plane is open and management local. */
  readonly access?: AccessPolicy;
}
