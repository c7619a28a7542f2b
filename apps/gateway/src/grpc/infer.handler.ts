/**
 * ModelInfer: bytes in, bytes out, one reply. The handler sees the serialised messages (the service is registered with
 * identity serialisers), so that nothing is copied or built that the reply does not need.
 */
import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js';
import {
  decodeModelInferRequest,
  encodeModelInferResponse,
  ServingError,
  toServingError,
  type ModelCatalog,
  type ReplyFrame,
  type ServedModel,
} from '@paceline/protocol';
import { systemClock, type Clock } from '@paceline/clock';
import type { Logger } from '@paceline/telemetry';
import type { AccessPolicy } from '../access/access-policy.js';
import { INFER } from '../access/actions.js';
import { admitCall } from '../access/grpc-access.js';
import type { InferHandler } from '../infer/infer-service.js';
import { replyTimingParameters, wantsTimings } from '../infer/reply-timings.js';
import { limitOfCall } from '../infer/time-limit.js';
import { toGrpcStatus } from './grpc-status.js';
import { toInferRequest } from './infer-request.js';
import { RequestNote, type NoteOptions } from './request-note.js';

export interface InferRpcOptions extends NoteOptions {
  readonly catalog: ModelCatalog;
  readonly inferHandler: InferHandler;
  readonly logger: Logger;
  /** For the deadlines of calls; the machine's without it. */
  readonly clock?: Clock;
  /** Who may infer; everybody without it. */
  readonly access?: AccessPolicy;
}

/** Whether each request to the model may have any number of responses. */
export const isDecoupled = (model: ServedModel): boolean => model.config.modelTransactionPolicy?.decoupled === true;

export type RawUnaryHandler = (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => void;

/** @returns the handler to register for ModelInfer. */
export function modelInfer(options: InferRpcOptions): RawUnaryHandler {
  const { catalog, inferHandler, logger, access, clock = systemClock } = options;
  const asking = access?.isOpen('grpc') === false ? access : undefined;
  return (call, callback) => {
    const note = new RequestNote(options, call, call.request.length);
    const fail = (error: unknown): void => {
      callback(toGrpcStatus(error, logger, 'ModelInfer'));
      note.failed(toServingError(error));
    };
    try {
      const grant = asking && admitCall(asking, INFER, call);
      const wire = decodeModelInferRequest(call.request);
      note.read(wire);
      grant?.requireModel(wire.modelName);
      const model = catalog.resolve(wire.modelName, wire.modelVersion);
      note.resolved(model);
      if (isDecoupled(model)) {
        throw new ServingError('UNIMPLEMENTED', "ModelInfer RPC doesn't support models with decoupled transaction policy", {
          reason: 'decoupled_model',
        });
      }
      const refused = inferHandler.precheck?.(model);
      if (refused) throw refused;
      const limit = limitOfCall(call.getDeadline(), Date.now(), clock.nowUs());
      const answer = (frame: ReplyFrame): void => {
        note.frame(frame);
        if (!frame.ok) fail(frame.error);
        else if (!frame.final)
          fail(
            new ServingError('INTERNAL', `expected a single response from model '${model.name}', got several`, {
              reason: 'several_responses',
            }),
          );
        else {
          const response = encodeModelInferResponse({
            modelName: inferCall.model.name,
            modelVersion: inferCall.model.version,
            id: wire.id,
            ...(timed && frame.timings && { parameters: replyTimingParameters(frame.timings) }),
            outputs: frame.outputs,
          });
          callback(null, response);
          note.sent(response.length);
          note.succeeded();
        }
      };
      const request = note.inTrace(toInferRequest(wire, model));
      const timed = wantsTimings(request.parameters);
      const inferCall = (grant?.meter(inferHandler, catalog) ?? inferHandler).infer(request, answer, limit);
      note.accepted(inferCall);
      // Also told after the reply has gone, when cancelling does nothing.
      call.once('cancelled', () => {
        inferCall.cancel();
        note.clientLeft();
      });
    } catch (error) {
      fail(error);
    }
  };
}
