/** Flags of Triton that Paceline knows only so that it can say what becomes of them. */
import { flag, optionalFlag, refused, repeatableFlag, withoutEffect } from '../flag.js';
import { integer, oneOf, port, text, toggle } from '../flag-types.js';

const group = 'Other flags of Triton';
const NO_CACHE = 'the response cache is not served yet; every request is computed';
const NO_CUDA = 'GPUs are used as ONNX Runtime uses them by itself';
const NO_TRACE = 'traces have another form here, see --trace-otlp-endpoint';
const NO_CLOUD = 'this cloud protocol is not served';

export const tritonFlags = {
  'strict-model-config': flag(group, toggle, 'false', 'Deprecated: the same as --disable-auto-complete-config'),
  'allow-client-shm': flag(group, toggle, 'false', 'Let clients name shared memory', refused('shared memory of clients is not served yet')),
  'rate-limit': flag(
    group,
    oneOf(['off', 'execution_count']),
    'off',
    'How executions of all models are paced',
    refused('the rate limiter is not served yet'),
  ),
  'rate-limit-resource': repeatableFlag(
    group,
    text('<name>:<count>[:<device>]'),
    'none',
    'Resource of the rate limiter',
    refused('the rate limiter is not served yet'),
  ),
  'cache-config': repeatableFlag(group, text('<name>,<key>=<value>'), 'none', 'Setting of a response cache', withoutEffect(NO_CACHE)),
  'cache-directory': optionalFlag(group, text('<directory>'), 'not set', 'Directory of cache libraries', withoutEffect(NO_CACHE)),
  'response-cache-byte-size': flag(group, integer('<bytes>', 0), '0', 'Deprecated: size of the response cache', withoutEffect(NO_CACHE)),
  'trace-config': repeatableFlag(group, text('<key>=<value>'), 'none', 'Setting of traces', withoutEffect(NO_TRACE)),
  'trace-file': optionalFlag(group, text('<file>'), 'not set', 'Deprecated: file for traces', withoutEffect(NO_TRACE)),
  'trace-level': repeatableFlag(
    group,
    oneOf(['OFF', 'TIMESTAMPS', 'TENSORS']),
    'OFF',
    'Deprecated: detail of traces',
    withoutEffect(NO_TRACE),
  ),
  'trace-rate': flag(group, integer('<count>', 1), '1000', 'Deprecated: requests per trace', withoutEffect(NO_TRACE)),
  'trace-count': flag(group, integer('<count>', -1), '-1', 'Deprecated: number of traces', withoutEffect(NO_TRACE)),
  'trace-log-frequency': flag(group, integer('<count>', 0), '0', 'Deprecated: traces per file', withoutEffect(NO_TRACE)),
  'host-policy': repeatableFlag(
    group,
    text('<policy>,<key>=<value>'),
    'none',
    'Processors a group of instances may use',
    withoutEffect('instances are placed by the system'),
  ),
  'pinned-memory-pool-byte-size': flag(group, integer('<bytes>', 0), '268435456', 'Pinned memory for GPUs', withoutEffect(NO_CUDA)),
  'cuda-memory-pool-byte-size': repeatableFlag(group, text('<gpu>:<bytes>'), '64 MiB each', 'Memory pool of a GPU', withoutEffect(NO_CUDA)),
  'cuda-virtual-address-size': repeatableFlag(group, text('<gpu>:<bytes>'), '1 GiB each', 'Address space of a GPU', withoutEffect(NO_CUDA)),
  'min-supported-compute-capability': optionalFlag(
    group,
    text('<capability>'),
    'not set',
    'Oldest GPU that is used',
    withoutEffect(NO_CUDA),
  ),
  'model-load-gpu-limit': repeatableFlag(
    group,
    text('<gpu>:<fraction>'),
    'none',
    'Memory of a GPU that models may fill',
    withoutEffect(NO_CUDA),
  ),
  'buffer-manager-thread-count': flag(
    group,
    integer('<count>', 0),
    '0',
    'Threads that copy tensors',
    withoutEffect('batches are gathered without extra threads'),
  ),
  'repoagent-directory': optionalFlag(
    group,
    text('<directory>'),
    'not set',
    'Directory of repository agents',
    withoutEffect('there are no repository agents'),
  ),
  'allow-sagemaker': flag(group, toggle, 'false', 'Serve the SageMaker protocol', refused(NO_CLOUD)),
  'sagemaker-port': flag(group, port, '8080', 'TCP port for SageMaker', withoutEffect(NO_CLOUD)),
  'sagemaker-safe-port-range': optionalFlag(group, text('<from>-<to>'), 'not set', 'Ports allowed for SageMaker', withoutEffect(NO_CLOUD)),
  'sagemaker-thread-count': flag(group, integer('<count>', 1), '8', 'Threads for SageMaker', withoutEffect(NO_CLOUD)),
  'allow-vertex-ai': flag(group, toggle, 'false', 'Serve the Vertex AI protocol', refused(NO_CLOUD)),
  'vertex-ai-port': flag(group, port, '8080', 'TCP port for Vertex AI', withoutEffect(NO_CLOUD)),
  'vertex-ai-thread-count': flag(group, integer('<count>', 1), '8', 'Threads for Vertex AI', withoutEffect(NO_CLOUD)),
  'vertex-ai-default-model': optionalFlag(group, text('<name>'), 'not set', 'Model for Vertex AI', withoutEffect(NO_CLOUD)),
};
