/**
 * ModelInfer: bytes in, bytes out, one reply. The handler sees the serialised messages (the service is registered with
 * identity serialisers), so that nothing is copied or built that the reply does not need.
 */
import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js';
import {
  decodeModelInferRequest,
  encodeModelInferResponse,
  ServingError,
  type ModelCatalog,
  type ReplyFrame,
  type ServedModel,
} from '@paceline/protocol';
import type { Logger } from '@paceline/telemetry';
import type { AccessPolicy } from '../access/access-policy.js';
import { INFER } from '../access/actions.js';
import { admitCall } from '../access/grpc-access.js';
import type { InferHandler } from '../infer/infer-service.js';
import { toGrpcStatus } from './grpc-status.js';
import { toInferRequest } from './infer-request.js';

export interface InferRpcOptions {
  readonly catalog: ModelCatalog;
  readonly inferHandler: InferHandler;
  readonly logger: Logger;
  /** Who may infer; everybody without it. */
  readonly access?: AccessPolicy;
}

/** Whether each request to the model may have any number of responses. */
export const isDecoupled = (model: ServedModel): boolean => model.config.modelTransactionPolicy?.decoupled === true;

export type RawUnaryHandler = (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => void;

/** @returns the handler to register for ModelInfer. */
export function modelInfer({ catalog, inferHandler, logger, access }: InferRpcOptions): RawUnaryHandler {
  const asking = access?.isOpen('grpc') === false ? access : undefined;
  return (call, callback) => {
    const fail = (error: unknown): void => callback(toGrpcStatus(error, logger, 'ModelInfer'));
    try {
      const grant = asking && admitCall(asking, INFER, call);
      const wire = decodeModelInferRequest(call.request);
      grant?.requireModel(wire.modelName);
      const model = catalog.resolve(wire.modelName, wire.modelVersion);
      if (isDecoupled(model)) {
        throw new ServingError('UNIMPLEMENTED', "ModelInfer RPC doesn't support models with decoupled transaction policy", {
          reason: 'decoupled_model',
        });
      }
      const answer = (frame: ReplyFrame): void => {
        if (!frame.ok) fail(frame.error);
        else if (!frame.final)
          fail(
            new ServingError('INTERNAL', `expected a single response from model '${model.name}', got several`, {
              reason: 'several_responses',
            }),
          );
        else
          callback(
            null,
            encodeModelInferResponse({
              modelName: inferCall.model.name,
              modelVersion: inferCall.model.version,
              id: wire.id,
              outputs: frame.outputs,
            }),
          );
      };
      const inferCall = (grant?.meter(inferHandler, catalog) ?? inferHandler).infer(toInferRequest(wire, model), answer);
      // Also told after the reply has gone, when cancelling does nothing.
      call.once('cancelled', () => inferCall.cancel());
    } catch (error) {
      fail(error);
    }
  };
}
