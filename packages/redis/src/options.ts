/**
 * How Redis is addressed and what that means for the client library: standalone, Sentinel or Cluster, with password and
 * TLS. Nothing is queued while there is no connection, no command is sent twice over a new one, and a connection that
 * answers nothing is cut.
 */
import { readFileSync } from 'node:fs';
import { ServingError } from '@paceline/protocol';
import type { ClusterOptions, RedisOptions as ClientOptions } from 'ioredis';

export interface RedisOptions {
  readonly mode: 'standalone' | 'sentinel' | 'cluster';
  /**
   * `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. One in standalone mode; in Cluster mode any of the
   * nodes; in Sentinel mode the sentinels, whose own credentials these then are.
   */
  readonly urls: readonly string[];
  /** Name under which the sentinels know the master; Sentinel mode only. */
  readonly sentinelMaster?: string | undefined;
  /** Wins over the password of the URLs. */
  readonly password?: string | undefined;
  /** PEM of the authorities that are trusted in place of the system's; needs `rediss://`. */
  readonly caFile?: string | undefined;
  /** How this connection is called in Redis' CLIENT LIST; no spaces. */
  readonly name: string;
  /** A connection on which nothing arrives for so long while a command waits is cut; default 1000. */
  readonly commandTimeoutMs?: number | undefined;
}

/** Ready for the client library, but for what differs between a connection and its duplicates. */
export type ClientPlan =
  | { readonly kind: 'single'; readonly options: ClientOptions; readonly text: string }
  | {
      readonly kind: 'cluster';
      readonly nodes: readonly { readonly host: string; readonly port: number }[];
      readonly options: ClusterOptions;
      readonly text: string;
    };

const DEFAULT_PORT = { standalone: 6379, sentinel: 26_379, cluster: 6379 } as const;
const CONNECT_TIMEOUT_MS = 2000;
/** After FIN: how long the other side may take before the socket is destroyed. */
const DISCONNECT_TIMEOUT_MS = 200;
const KEEP_ALIVE_MS = 5000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 500;
/** A command in a cluster is sent again so often: it may have moved, or its node be connecting. A hung node costs 2 timeouts. */
const CLUSTER_REPEATS = 3;

/** Waits longer after each failure, up to half a second, so that a Redis that is back is found soon. */
export function retryDelayMs(attempt: number): number {
  return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10));
}

/** @throws ServingError INVALID_ARGUMENT naming the setting, what it may be and what it is */
export function planClient(options: RedisOptions): ClientPlan {
  const addresses = options.urls.map((url) => parseUrl(url, options.mode));
  const [first] = addresses;
  if (!first) throw invalid('the Redis addresses are empty: at least one redis:// or rediss:// URL is expected');
  if (options.mode === 'standalone' && addresses.length > 1)
    throw invalid(`one Redis URL is expected in standalone mode, found ${addresses.length}; several belong to sentinel or cluster mode`);
  if (addresses.some(({ secure }) => secure !== first.secure)) throw invalid('the Redis URLs must be all redis:// or all rediss://');
  if (options.caFile !== undefined && !first.secure)
    throw invalid('a CA file for Redis is of use only with rediss:// URLs, found redis://');
  const tls = first.secure ? { ...(options.caFile === undefined ? {} : { ca: readCa(options.caFile) }) } : undefined;
  const password = options.password ?? first.password;
  const common: ClientOptions = {
    connectionName: options.name,
    ...(password === undefined ? {} : { password }),
    ...(first.username === undefined || options.mode === 'sentinel' ? {} : { username: first.username }),
    ...(tls ? { tls } : {}),
    // Answers have the same shapes with every server.
    protocol: 2,
    disableClientInfo: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: options.commandTimeoutMs ?? 1000,
    keepAlive: KEEP_ALIVE_MS,
    // What was under way when the connection broke fails then; the callers know what to do again.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    ...{ disconnectTimeout: DISCONNECT_TIMEOUT_MS },
  };
  const text = addresses.map(({ host, port }) => `${host}:${port}`).join(',');
  if (options.mode === 'cluster') {
    const nodes = addresses.map(({ host, port }) => ({ host, port }));
    const cluster: ClusterOptions = {
      redisOptions: common,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryDelayMs,
      maxRedirections: CLUSTER_REPEATS,
      slotsRefreshInterval: 5000,
    };
    return { kind: 'cluster', nodes, options: cluster, text };
  }
  const single: ClientOptions = {
    ...common,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
    // A master that became a replica: its clients have to find the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    ...(first.db === undefined ? {} : { db: first.db }),
  };
  if (options.mode === 'standalone') return { kind: 'single', options: { ...single, host: first.host, port: first.port }, text };
  if (options.sentinelMaster === undefined) throw invalid('sentinel mode needs the name of the master');
  const sentinel: ClientOptions = {
    ...single,
    sentinels: addresses.map(({ host, port }) => ({ host, port })),
    name: options.sentinelMaster,
    ...(first.password === undefined ? {} : { sentinelPassword: first.password }),
    ...(first.username === undefined ? {} : { sentinelUsername: first.username }),
    ...(tls ? { sentinelTLS: tls, enableTLSForSentinelMode: true } : {}),
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    sentinelRetryStrategy: retryDelayMs,
    failoverDetector: true,
  };
  return { kind: 'single', options: sentinel, text };
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number | undefined;
}

function parseUrl(text: string, mode: RedisOptions['mode']): Address {
  const url = URL.parse(text);
  // The text may hold a password: it is not repeated.
  if (!url || (url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '')
    throw invalid('a Redis URL is redis://[user:password@]host[:port][/db], or rediss:// for TLS; found something else');
  const db = url.pathname.replace('/', '');
  if (!/^\d*$/.test(db)) throw invalid(`the path of a Redis URL is the number of a database, found "${db}"`);
  if (db !== '' && mode !== 'standalone')
    throw invalid(`a Redis URL names a database only in standalone mode, found "${db}" in ${mode} mode`);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? DEFAULT_PORT[mode] : Number(url.port),
    secure: url.protocol === 'rediss:',
    username: url.username === '' ? undefined : decodeURIComponent(url.username),
    password: url.password === '' ? undefined : decodeURIComponent(url.password),
    db: db === '' ? undefined : Number(db),
  };
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw invalid(`the CA file for Redis cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function invalid(message: string): ServingError {
  return new ServingError('INVALID_ARGUMENT', message, { reason: 'redis_options' });
}
