export { ERROR_CODES, ServingError, toServingError, type ErrorCode, type ServingErrorOptions } from './error.js';
export { httpStatusOf, retryAfterSeconds } from './error-status.js';
export {
  decodeModelInferRequest,
  WIRE_LIMITS,
  type WireInferRequest,
  type WireInput,
  type WireOutput,
  type WireParameters,
} from './grpc/infer-request.js';
export { encodeModelInferResponse, encodeModelStreamInferResponse, type WireInferResponse } from './grpc/infer-response.js';
export {
  contentFieldOf,
  contentsToBytes,
  countContents,
  type ContentCounts,
  type ContentRange,
  type OutOfRange,
} from './grpc/typed-contents.js';
export {
  isCurrentEpoch,
  type CommonSettings,
  type CountedTime,
  type Device,
  type Epoch,
  type GatewayMessage,
  type LanePressure,
  type LearnedBatching,
  type Member,
  type MemberRole,
  type RequestAttempt,
  type RoutedModel,
  type Routing,
  type SchedulerMessage,
  type VersionCounters,
} from './cluster.js';
export { envelopeAfter, timeoutAfter } from './infer.js';
export type { Envelope, InferRequest, Parameters, ParameterValue, ReplyFrame, RequestedOutput, RequestRef, StageTimings } from './infer.js';
export type { LoadParameter, ModelCatalog, ModelControl, ModelIndexEntry, ModelState, ServedModel, TensorSpec } from './model.js';
export type { ModelFileDescription, ModelFileTensor } from './model-file.js';
