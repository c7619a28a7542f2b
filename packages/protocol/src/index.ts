export { ERROR_CODES, ServingError, toServingError, type ErrorCode, type ServingErrorOptions } from './error.js';
export type {
  Envelope,
  InferRequest,
  Parameters,
  ParameterValue,
  ReplyFrame,
  RequestedOutput,
  RequestRef,
  StageTimings,
} from './infer.js';
export type {
  LoadParameter,
  ModelCatalog,
  ModelControl,
  ModelIndexEntry,
  ModelState,
  ServedModel,
  TensorSpec,
} from './model.js';
