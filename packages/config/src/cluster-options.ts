/** What a process of a cluster was told of the others; every number is in the unit of its name. */
import type { ServeOptions } from './serve-options.js';

export interface RedisOptions {
  readonly mode: 'standalone' | 'sentinel' | 'cluster';
  /** `redis://` or `rediss://`, at least one; all of one scheme. */
  readonly urls: readonly string[];
  /** Its first line is the password. */
  readonly passwordFile: string | undefined;
  /** Set in mode `sentinel` alone. */
  readonly sentinelMaster: string | undefined;
  /** PEM; undefined = the authorities of the system. */
  readonly caFile: string | undefined;
}

/** PEM files for the connections between processes; certificate and key are both there or both not. */
export interface LinkTlsOptions {
  readonly certificateFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly caFile: string | undefined;
}

/** Where other processes reach this one. */
export interface LinkOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** What others dial. */
  readonly advertiseHost: string;
  /** undefined = connections are not encrypted. */
  readonly tls: LinkTlsOptions | undefined;
}

export interface ClusterOptions {
  readonly redis: RedisOptions;
  /** What every key in Redis begins with. */
  readonly prefix: string;
  readonly partitions: number;
  /** From the environment; `secretFile` counts where both are there. */
  readonly secret: string | undefined;
  readonly secretFile: string | undefined;
  readonly link: LinkOptions;
  /** Input tensors of a request up to this travel through Redis. */
  readonly inlineBytes: number;
  /** undefined = load requests that bring files are refused. */
  readonly modelUploadDirectory: string | undefined;
  readonly heartbeatMs: number;
  readonly leaseTtlMs: number;
}

/** The command line of `gateway`, `scheduler` and `worker`: that of `paceline serve`, and the cluster. */
export interface ClusterServeOptions extends ServeOptions {
  readonly cluster: ClusterOptions;
}
