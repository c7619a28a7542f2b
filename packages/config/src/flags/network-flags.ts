/** Flags of the three front doors: HTTP, gRPC and metrics. */
import { flag, optionalFlag, refused, repeatableFlag, withoutEffect } from '../flag.js';
import { integer, metricSetting, oneOf, port, text, toggle } from '../flag-types.js';

const NO_KEEPALIVE = withoutEffect('connections follow the defaults of the gRPC library');

export const httpFlags = {
  'allow-http': flag('HTTP', toggle, 'true', 'Serve the v2 protocol over HTTP'),
  'http-address': flag('HTTP', text('<address>'), '127.0.0.1', 'Address to listen on; 0.0.0.0 opens the server to the network'),
  'http-port': flag('HTTP', port, '8000', 'TCP port; 0 lets the system choose'),
  'http-max-input-size': flag('HTTP', integer('<bytes>', 1), '67108864', 'Largest request body in bytes, also after decompression'),
  'http-max-header-size': flag('HTTP', integer('<bytes>', 1024, 1_048_576), '65536', 'Largest request line and headers in bytes'),
  'http-max-header-count': flag('HTTP', integer('<count>', 4, 10_000), '100', 'Headers that a request may have'),
  'http-max-decompression-ratio': flag(
    'HTTP',
    integer('<factor>', 0),
    '0',
    'How many times its size a compressed body may become; 0 leaves it to the size limit',
  ),
  'http-header-timeout-secs': flag(
    'HTTP',
    integer('<seconds>', 1, 3600),
    '10',
    'Seconds from the first byte of a request to the end of its headers',
  ),
  'http-stall-timeout-secs': flag(
    'HTTP',
    integer('<seconds>', 1, 3600),
    '30',
    'Seconds in which a client must send more of a request, or take more of a response; gRPC too',
  ),
  'http-body-timeout-secs': flag('HTTP', integer('<seconds>', 1, 86_400), '300', 'Seconds from the first byte of a request to its last'),
  'http-keep-alive-timeout-secs': flag('HTTP', integer('<seconds>', 1, 86_400), '75', 'Seconds a connection may be without a request'),
  'http-thread-count': flag(
    'HTTP',
    integer('<count>', 1),
    '8',
    'Threads that handle HTTP requests',
    withoutEffect('one event loop handles all connections'),
  ),
  'reuse-http-port': flag('HTTP', toggle, 'false', 'Share the port with other servers', refused('the port belongs to one server')),
  'http-header-forward-pattern': optionalFlag(
    'HTTP',
    text('<regex>'),
    'not set',
    'Headers handed to models as request parameters',
    refused('headers are not handed to models yet'),
  ),
};

export const grpcFlags = {
  'allow-grpc': flag('gRPC', toggle, 'true', 'Serve the v2 protocol over gRPC'),
  'grpc-address': flag('gRPC', text('<address>'), '127.0.0.1', 'Address to listen on; 0.0.0.0 opens the server to the network'),
  'grpc-port': flag('gRPC', port, '8001', 'TCP port; 0 lets the system choose'),
  'grpc-max-concurrent-streams': flag(
    'gRPC',
    integer('<count>', 1, 2_147_483_647),
    '1024',
    'Calls that one connection may have open; more wait at the client',
  ),
  'reuse-grpc-port': flag('gRPC', toggle, 'false', 'Share the port with other servers', refused('the port belongs to one server')),
  'grpc-header-forward-pattern': optionalFlag(
    'gRPC',
    text('<regex>'),
    'not set',
    'Headers handed to models as request parameters',
    refused('headers are not handed to models yet'),
  ),
  'grpc-infer-thread-count': flag(
    'gRPC',
    integer('<count>', 1),
    '2',
    'Threads that handle inference calls',
    withoutEffect('one event loop handles all connections'),
  ),
  'grpc-infer-allocation-pool-size': flag(
    'gRPC',
    integer('<count>', 0),
    '8',
    'Request objects kept for reuse',
    withoutEffect('request objects are not pooled'),
  ),
  'grpc-max-response-pool-size': flag(
    'gRPC',
    integer('<count>', 1),
    '2147483647',
    'Response objects kept for reuse',
    withoutEffect('response objects are not pooled'),
  ),
  'grpc-infer-response-compression-level': flag(
    'gRPC',
    oneOf(['none', 'low', 'medium', 'high']),
    'none',
    'Compression of inference responses',
    withoutEffect('responses are compressed as the gRPC library agrees with the client'),
  ),
  'grpc-keepalive-time': flag('gRPC', integer('<ms>', 1), '7200000', 'Milliseconds of silence until a client is pinged', NO_KEEPALIVE),
  'grpc-keepalive-timeout': flag('gRPC', integer('<ms>', 1), '20000', 'Milliseconds a ping may stay unanswered', NO_KEEPALIVE),
  'grpc-keepalive-permit-without-calls': flag('gRPC', toggle, 'false', 'Ping also while no call is open', NO_KEEPALIVE),
  'grpc-max-connection-age': optionalFlag('gRPC', integer('<ms>', 1), 'no limit', 'Milliseconds a connection may live', NO_KEEPALIVE),
  'grpc-max-connection-age-grace': optionalFlag('gRPC', integer('<ms>', 1), 'no limit', 'Milliseconds more for open calls', NO_KEEPALIVE),
  'grpc-http2-max-pings-without-data': flag('gRPC', integer('<count>', 0), '2', 'Pings sent without data between them', NO_KEEPALIVE),
  'grpc-http2-min-recv-ping-interval-without-data': flag(
    'gRPC',
    integer('<ms>', 0),
    '300000',
    'Milliseconds that must lie between two pings of a client',
    NO_KEEPALIVE,
  ),
  'grpc-http2-max-ping-strikes': flag('gRPC', integer('<count>', 0), '2', 'Pings too many before a client is cut off', NO_KEEPALIVE),
};

export const metricsFlags = {
  'allow-metrics': flag('Metrics', toggle, 'true', 'Serve metrics for Prometheus under /metrics'),
  'metrics-address': optionalFlag('Metrics', text('<address>'), 'the HTTP address', 'Address to listen on'),
  'metrics-port': flag('Metrics', port, '8002', 'TCP port; 0 lets the system choose'),
  'allow-gpu-metrics': flag('Metrics', toggle, 'true', 'Report GPUs', withoutEffect('there are no metrics of GPUs')),
  'allow-cpu-metrics': flag('Metrics', toggle, 'true', 'Report CPU and memory of the machine'),
  'metrics-interval-ms': flag(
    'Metrics',
    integer('<ms>', 1),
    '2000',
    'Milliseconds between two measurements of GPU and CPU',
    withoutEffect('gauges are measured when somebody reads them'),
  ),
  'metrics-config': repeatableFlag(
    'Metrics',
    metricSetting,
    'counter_latencies=true, histogram_latencies=false, summary_latencies=false, summary_quantiles=0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001',
    'Which latencies of Triton are reported: cumulative counters, summaries with these quantiles; may be repeated',
  ),
};
