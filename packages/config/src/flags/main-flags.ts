/** Flags of the server itself, its log and its model repository. */
import { flag, optionalFlag, refused, repeatableFlag, withoutEffect } from '../flag.js';
import { backendSetting, fraction, httpUrl, integer, oneOf, text, toggle } from '../flag-types.js';

export const serverFlags = {
  id: flag('Server', text('<name>'), 'paceline', 'Name of this server in its metadata'),
  'exit-timeout-secs': flag(
    'Server',
    integer('<seconds>', 0, 86_400),
    '30',
    'Seconds that queued and running requests may take to finish after SIGTERM or Ctrl-C',
  ),
  'cpu-scheduling': flag(
    'Server',
    oneOf(['batch', 'unchanged']),
    'batch',
    'batch: on Linux this process waits for its turn on a busy core instead of interrupting inference for each request (SCHED_BATCH); unchanged: as it was started',
  ),
  'drain-delay-ms': flag(
    'Server',
    integer('<ms>', 0, 3_600_000),
    '0',
    'Milliseconds after SIGTERM in which the server says that it is not ready but still serves, so that load balancers notice',
  ),
  'lame-duck-ms': flag(
    'Server',
    integer('<ms>', 0, 60_000),
    '500',
    'Milliseconds after that in which connections without a request stay open, so that what comes on them is answered 503',
  ),
};

export const repositoryFlags = {
  'model-repository': repeatableFlag(
    'Model repository',
    text('<directory>'),
    'the example models',
    'Directory with one folder per model; may be repeated. Also: --model-store',
  ),
  'model-control-mode': flag(
    'Model repository',
    oneOf(['none', 'poll', 'explicit']),
    'none',
    'none: load every model at start; poll: that, and follow the changes of the repository; explicit: only those of --load-model, more by the repository API',
  ),
  'load-model': repeatableFlag(
    'Model repository',
    text('<name>'),
    'none',
    'Model to load at start in mode explicit; may be repeated. * alone means every model',
  ),
  'exit-on-error': flag(
    'Model repository',
    toggle,
    'true',
    'End the server when a model fails to load at start; a cluster goes on without it',
  ),
  'strict-readiness': flag('Model repository', toggle, 'true', 'Ready only while every known model version is ready'),
  'disable-auto-complete-config': flag(
    'Model repository',
    toggle,
    'false',
    'Take config.pbtxt as it stands; do not complete it from the model file',
  ),
  'model-load-thread-count': flag('Model repository', integer('<count>', 1, 256), '4', 'Models loaded at the same time'),
  'model-load-retry-count': flag(
    'Model repository',
    integer('<count>', 0),
    '0',
    'How often a load that failed in the backend is tried again',
  ),
  'model-config-name': optionalFlag(
    'Model repository',
    text('<name>'),
    'not set',
    'Use configs/<name>.pbtxt of a model, where present, instead of config.pbtxt',
  ),
  'repository-poll-secs': flag(
    'Model repository',
    integer('<seconds>', 1, 86_400),
    '15',
    'Seconds between two looks at the repository in mode poll',
  ),
  'model-namespacing': flag(
    'Model repository',
    toggle,
    'false',
    'Allow the same model name in several repositories',
    refused('model names are unique over all repositories'),
  ),
  'enable-peer-access': flag(
    'Model repository',
    toggle,
    'true',
    'Let GPUs read the memory of each other',
    withoutEffect('GPUs are used as ONNX Runtime uses them by itself'),
  ),
};

/** Paceline's own: Triton has no limits for the whole server. */
export const limitFlags = {
  'request-timeout-ms': flag(
    'Limits',
    integer('<ms>', 1, 86_400_000),
    '60000',
    'Milliseconds a request may take, queueing included; then it fails with DEADLINE_EXCEEDED',
  ),
  'max-unanswered-requests': flag(
    'Limits',
    integer('<count>', 1),
    '20000',
    'Requests accepted and not yet answered; more are refused with 429 and the time to wait',
  ),
  'max-unanswered-requests-per-model': flag('Limits', integer('<count>', 1), '10000', 'The same, of one model version'),
  'max-unanswered-bytes': flag('Limits', integer('<bytes>', 1), '1073741824', 'Bytes of their input tensors'),
  'max-buffered-bytes': flag(
    'Limits',
    integer('<bytes>', 1),
    '2147483648',
    'Bytes of request bodies above 64 KiB, HTTP and gRPC together, from before they are read until they are answered',
  ),
  'max-connections': flag('Limits', integer('<count>', 1), '10000', 'Open connections of HTTP, and as many of gRPC; more are dropped'),
};

export const logFlags = {
  'log-verbose': flag('Logging', integer('<level>', 0, 10), '0', 'Detail beyond the ordinary log; 0 is off'),
  'log-info': flag('Logging', toggle, 'true', 'Log what happens'),
  'log-warning': flag('Logging', toggle, 'true', 'Log warnings'),
  'log-error': flag('Logging', toggle, 'true', 'Log errors'),
  'access-log': optionalFlag(
    'Logging',
    text('<file>'),
    'off',
    'File that gets one JSON line for each inference request, with its outcome and timings; - is standard output',
  ),
  'log-file': optionalFlag('Logging', text('<file>'), 'stderr', 'File the log is appended to'),
  'log-format': flag(
    'Logging',
    oneOf(['default', 'ISO8601']),
    'default',
    'Form of a log line',
    withoutEffect('a terminal gets readable lines, a file or pipe one JSON object a line with ISO 8601 times'),
  ),
};

export const traceFlags = {
  'trace-otlp-endpoint': optionalFlag(
    'Traces',
    httpUrl,
    'off',
    'OpenTelemetry collector that gets spans by OTLP over HTTP, as in http://localhost:4318; /v1/traces is added where there is no path',
  ),
  'trace-sample-rate': flag(
    'Traces',
    fraction,
    '1',
    'Share of the requests without a trace context that get a trace, 0 to 1; others are traced where their context says sampled',
  ),
};

export const backendFlags = {
  'backend-config': repeatableFlag(
    'Backends',
    backendSetting,
    'none',
    'Setting of a backend; may be repeated, e.g. onnxruntime,default-max-batch-size=4',
  ),
  'simulated-gpus': flag(
    'Backends',
    integer('<count>', 0, 64),
    '0',
    'GPUs that a worker pretends to have instead of its own, on which models of the backend simulated run',
  ),
  'backend-directory': optionalFlag(
    'Backends',
    text('<directory>'),
    'built in',
    'Directory of backend libraries',
    withoutEffect('backends are part of Paceline'),
  ),
};
