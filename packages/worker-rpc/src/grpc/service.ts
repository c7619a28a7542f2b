/**
 * The gRPC service of a worker: one method, one stream per scheduler, messages of raw bytes. A message is what one side
 * had to say in one tick of its event loop: a kind byte and its fields, again and again.
 */
import type { ChannelOptions, ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';

export const WORKER_PACKAGE = 'paceline.worker';
export const WORKER_SERVICE = 'Worker';
export const CONNECT_METHOD = 'Connect';
export const CONNECT_PATH = `/${WORKER_PACKAGE}.${WORKER_SERVICE}/${CONNECT_METHOD}`;

/** Spoken by this build after the handshake; another version is refused. */
export const STREAM_PROTOCOL = 'paceline-worker/1';

/** Largest message: a model configuration with its warmup samples. */
export const MAX_MESSAGE_BYTES = 128 * 1024 * 1024;

const same = (bytes: Buffer): Buffer => bytes;

export const workerService: ServiceDefinition<UntypedServiceImplementation> = {
  [CONNECT_METHOD]: {
    path: CONNECT_PATH,
    requestStream: true,
    responseStream: true,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  },
};

/** As @grpc/proto-loader would make it of a .proto file. */
export const workerPackageDefinition = { [`${WORKER_PACKAGE}.${WORKER_SERVICE}`]: workerService };

/** For both sides. A connection that does not answer is closed, so that half-open ones do not pile up. */
export const channelOptions: ChannelOptions = {
  'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc.keepalive_time_ms': 2000,
  'grpc.keepalive_timeout_ms': 2000,
  'grpc.keepalive_permit_without_calls': 1,
};

/** Scheduler to worker. */
export const TO_WORKER = { ping: 0, load: 1, activate: 2, retire: 3, release: 4, claim: 5, execute: 6 } as const;

/** Worker to scheduler. `done`, `failed`, `loaded` and `claimed` answer the question of the same number. */
export const TO_SCHEDULER = {
  ping: 0,
  hello: 1,
  done: 2,
  failed: 3,
  loaded: 4,
  claimed: 5,
  model: 6,
  modelGone: 7,
  instance: 8,
  started: 9,
  completion: 10,
  draining: 11,
} as const;
