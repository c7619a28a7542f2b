/**
 * What `paceline serve` was asked to do: every flag parsed, checked against the others and frozen. The only form in
 * which the rest of the server sees its command line; nothing else reads argv or the environment for settings.
 */
import type { KeyScope } from './keys/scopes.js';

/** An address a front door listens on. */
export interface ListenOptions {
  readonly enabled: boolean;
  /** Host name or IP address; `0.0.0.0` is every IPv4 interface, `::` every interface. */
  readonly address: string;
  /** 0 to 65535; 0 lets the system choose (the chosen one is printed and logged). */
  readonly port: number;
}

/** Files of one port that speaks TLS, all PEM. */
export interface TlsOptions {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities of clients; `undefined` = those of the system. */
  readonly caFile: string | undefined;
  /** Clients without a certificate of these authorities are refused. */
  readonly mutual: boolean;
}

/** One group of actions that need a header with a fixed value. */
export interface RestrictedApi {
  readonly apis: readonly KeyScope[];
  /** Name of the header. */
  readonly key: string;
  readonly value: string;
}

export type RestrictedApis = readonly RestrictedApi[];

/** Who may do what. */
export interface AccessOptions {
  /** The file of API keys; `undefined` = nobody needs a key. */
  readonly keyFile: string | undefined;
  readonly restrictedHttp: RestrictedApis;
  readonly restrictedGrpc: RestrictedApis;
  /** Origins whose web pages may call the server; `*` = any. */
  readonly corsOrigins: readonly string[];
}

/** The v2 protocol over HTTP. */
export interface HttpOptions extends ListenOptions {
  /** Largest request body, counted before parsing and again after decompression. */
  readonly maxInputBytes: number;
  /** Request line and headers together. */
  readonly maxHeaderBytes: number;
  readonly maxHeaderCount: number;
  /** Largest factor by which decompression may enlarge a body; 0 = any. */
  readonly maxDecompressionRatio: number;
  /** From the first byte of a request to the end of its headers. */
  readonly headerTimeoutSecs: number;
  /** Without progress of a request or of a response. */
  readonly stallTimeoutSecs: number;
  /** From the first byte of a request to its last. */
  readonly bodyTimeoutSecs: number;
  /** Without a request. */
  readonly keepAliveTimeoutSecs: number;
  /** `undefined` = plain HTTP. */
  readonly tls: TlsOptions | undefined;
}

/** The v2 protocol over gRPC; one message may be as large as an HTTP body. */
export interface GrpcOptions extends ListenOptions {
  /** Calls that one connection may have open. */
  readonly maxConcurrentStreams: number;
  /** `undefined` = plain HTTP/2. */
  readonly tls: TlsOptions | undefined;
}

/** What one server keeps at most; what goes beyond is refused, not queued. */
export interface LimitOptions {
  /** From acceptance to the answer; then the client gets DEADLINE_EXCEEDED. */
  readonly requestTimeoutMs: number;
  /** Requests accepted and not yet answered, over all models. */
  readonly maxUnansweredRequests: number;
  /** The same of one model version. */
  readonly maxUnansweredRequestsPerModel: number;
  /** Their input tensors. */
  readonly maxUnansweredBytes: number;
  /** Bodies above 64 KiB that are being read or answered, over every protocol. */
  readonly maxBufferedBytes: number;
  /** Of each front door for requests. */
  readonly maxConnections: number;
}

export interface LogOptions {
  /** 0 = off; 1 and above adds ever finer detail. */
  readonly verbose: number;
  readonly info: boolean;
  readonly warning: boolean;
  readonly error: boolean;
  /** Where the log goes; `undefined` = stderr. */
  readonly file: string | undefined;
  /** Value of `--log-format`, which the log settings of the protocol show. */
  readonly format: 'default' | 'ISO8601';
  /** Where the access log goes: a path, `-` = standard output; `undefined` = there is none. */
  readonly access: string | undefined;
}

/** Spans for OpenTelemetry. */
export interface TracingOptions {
  /** Where the collector takes them; `undefined` = there are none. */
  readonly endpoint: string | undefined;
  /** Of the requests without a trace context, 0 to 1. */
  readonly sampleRate: number;
}

/** The Prometheus endpoint. */
export interface MetricsOptions extends ListenOptions {
  /** CPU and memory of the machine. */
  readonly host: boolean;
  /** Triton's cumulative durations. */
  readonly counterLatencies: boolean;
  /** Quantiles of Triton's summaries; empty = none are kept. */
  readonly summaryQuantiles: readonly number[];
}

/**
 * How the model repository is used at start. The directories stand as given: whether they exist is found out by
 * whoever opens them.
 */
export interface RepositoryOptions {
  /** Directories, in the order given; empty = the example models that come with Paceline. */
  readonly directories: readonly string[];
  readonly controlMode: 'none' | 'poll' | 'explicit';
  /** Mode `poll`: between two looks at the repositories. */
  readonly pollSecs: number;
  /** Models to load at start in explicit mode; `'all'` for `--load-model=*`. Empty in the other modes. */
  readonly loadModels: readonly string[] | 'all';
  /** A model that fails to load at start ends the server with exit code 1. */
  readonly exitOnError: boolean;
  /** Ready only while every known model version is. */
  readonly strictReadiness: boolean;
  /** What config.pbtxt leaves out is completed from the model file. */
  readonly autoCompleteConfig: boolean;
  /** How often a load that failed in the backend is tried again. */
  readonly loadRetryCount: number;
  /** Models loaded at the same time, at least 1. */
  readonly loadThreadCount: number;
  /** `configs/<name>.pbtxt` is taken instead of `config.pbtxt` where a model has it. */
  readonly configName: string | undefined;
}

/** `--backend-config`: settings per backend, e.g. `backendConfig.get('onnxruntime')?.get('default-max-batch-size')`. */
export type BackendConfig = ReadonlyMap<string, ReadonlyMap<string, string>>;

export interface ServeOptions {
  /** The server's name in its metadata. */
  readonly id: string;
  /** How long queued and running work may take to finish after SIGTERM. */
  readonly exitTimeoutSecs: number;
  /** `batch`: this process, not its instance hosts, is to wait for its turn on a busy core. */
  readonly cpuScheduling: 'batch' | 'unchanged';
  /** After SIGTERM: how long it is not ready but still serves everything. */
  readonly drainDelayMs: number;
  /** After that: how long connections without a request stay open, so that what comes on them is refused and not lost. */
  readonly lameDuckMs: number;
  readonly repository: RepositoryOptions;
  readonly http: HttpOptions;
  readonly grpc: GrpcOptions;
  readonly metrics: MetricsOptions;
  readonly access: AccessOptions;
  readonly limits: LimitOptions;
  readonly log: LogOptions;
  readonly tracing: TracingOptions;
  readonly backendConfig: BackendConfig;
  /** GPUs that are pretended, for models of the backend `simulated`; 0 = none. */
  readonly simulatedGpus: number;
}

/** The outcome of reading a command line. */
export type ServeOptionsResult<Options = ServeOptions> =
  | { readonly kind: 'options'; readonly options: Options; readonly warnings: readonly string[] }
  /** `--help` was given: the text to print on stdout, exit code 0. */
  | { readonly kind: 'help'; readonly text: string }
  /** Every violation found, one sentence each; exit code 1. */
  | { readonly kind: 'errors'; readonly errors: readonly string[] };
