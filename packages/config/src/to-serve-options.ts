/** From the flat values of the flags to the nested options that the server reads. */
import type { FlagValues } from './flag-table.js';
import type { BackendConfig, MetricsOptions, ServeOptions, TlsOptions } from './serve-options.js';

export function toServeOptions(values: FlagValues): ServeOptions {
  const loads = values['load-model'];
  return {
    id: values.id,
    exitTimeoutSecs: values['exit-timeout-secs'],
    cpuScheduling: values['cpu-scheduling'],
    drainDelayMs: values['drain-delay-ms'],
    lameDuckMs: values['lame-duck-ms'],
    repository: {
      directories: values['model-repository'],
      controlMode: values['model-control-mode'],
      pollSecs: values['repository-poll-secs'],
      loadModels: loads.includes('*') ? 'all' : loads,
      exitOnError: values['exit-on-error'],
      strictReadiness: values['strict-readiness'],
      autoCompleteConfig: !values['disable-auto-complete-config'] && !values['strict-model-config'],
      loadRetryCount: values['model-load-retry-count'],
      loadThreadCount: values['model-load-thread-count'],
      configName: values['model-config-name'],
    },
    http: {
      enabled: values['allow-http'],
      address: values['http-address'],
      port: values['http-port'],
      maxInputBytes: values['http-max-input-size'],
      maxHeaderBytes: values['http-max-header-size'],
      maxHeaderCount: values['http-max-header-count'],
      maxDecompressionRatio: values['http-max-decompression-ratio'],
      headerTimeoutSecs: values['http-header-timeout-secs'],
      stallTimeoutSecs: values['http-stall-timeout-secs'],
      bodyTimeoutSecs: values['http-body-timeout-secs'],
      keepAliveTimeoutSecs: values['http-keep-alive-timeout-secs'],
      tls: tlsOf(values['http-tls-cert'], values['http-tls-key'], values['http-tls-ca'], values['http-tls-mutual']),
    },
    grpc: {
      enabled: values['allow-grpc'],
      address: values['grpc-address'],
      port: values['grpc-port'],
      maxConcurrentStreams: values['grpc-max-concurrent-streams'],
      tls: tlsOf(values['grpc-server-cert'], values['grpc-server-key'], values['grpc-root-cert'], values['grpc-use-ssl-mutual']),
    },
    metrics: {
      enabled: values['allow-metrics'],
      address: values['metrics-address'] ?? values['http-address'],
      port: values['metrics-port'],
      host: values['allow-cpu-metrics'],
      ...latencyMetrics(values['metrics-config']),
    },
    access: {
      keyFile: values['api-key-file'],
      restrictedHttp: values['http-restricted-api'],
      restrictedGrpc: values['grpc-restricted-protocol'],
      corsOrigins: values['http-cors-origin'],
    },
    limits: {
      requestTimeoutMs: values['request-timeout-ms'],
      maxUnansweredRequests: values['max-unanswered-requests'],
      maxUnansweredRequestsPerModel: values['max-unanswered-requests-per-model'],
      maxBufferedBytes: values['max-buffered-bytes'],
      maxConnections: values['max-connections'],
      maxUnansweredBytes: values['max-unanswered-bytes'],
    },
    log: {
      verbose: values['log-verbose'],
      info: values['log-info'],
      warning: values['log-warning'],
      error: values['log-error'],
      file: values['log-file'],
      format: values['log-format'],
      access: values['access-log'],
    },
    tracing: { endpoint: values['trace-otlp-endpoint'], sampleRate: values['trace-sample-rate'] },
    backendConfig: groupBackendConfig(values['backend-config']),
    simulatedGpus: values['simulated-gpus'],
  };
}

/** That the flags fit each other was checked before. */
function tlsOf(
  certFile: string | undefined,
  keyFile: string | undefined,
  caFile: string | undefined,
  mutual: boolean,
): TlsOptions | undefined {
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile, caFile, mutual };
}

function groupBackendConfig(settings: FlagValues['backend-config']): BackendConfig {
  const byBackend = new Map<string, Map<string, string>>();
  for (const { backend, key, value } of settings) {
    const ofBackend = byBackend.get(backend) ?? new Map<string, string>();
    byBackend.set(backend, ofBackend.set(key, value));
  }
  return byBackend;
}

const DEFAULT_QUANTILES: readonly number[] = [0.5, 0.9, 0.95, 0.99, 0.999];

/** The last setting of a key counts. */
function latencyMetrics(settings: FlagValues['metrics-config']): Pick<MetricsOptions, 'counterLatencies' | 'summaryQuantiles'> {
  let counterLatencies = true;
  let summaries = false;
  let quantiles = DEFAULT_QUANTILES;
  for (const { key, value } of settings) {
    if (key === 'counter_latencies') counterLatencies = value;
    else if (key === 'summary_latencies') summaries = value;
    else if (key === 'summary_quantiles') quantiles = value;
  }
  return { counterLatencies, summaryQuantiles: summaries ? quantiles : [] };
}
