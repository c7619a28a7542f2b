/** The span of a request at its gateway: from when it is read until its client has its answer, under the client's own span. */
import { ServingError, type InferRequest, type ReplyFrame } from '@paceline/protocol';
import type { Span, SpanAttributes, Tracing } from '@paceline/telemetry';
import type { AcceptedRequest } from './pending-request.js';

/** @returns undefined where the request is not sampled */
export function beginInferSpan(tracing: Tracing, request: InferRequest, nowUs: number): Span | undefined {
  const { modelName, modelVersion, id, traceParent } = request;
  const attributes = {
    'paceline.model': modelName,
    ...(modelVersion !== '' && { 'paceline.version': modelVersion }),
    ...(id !== '' && { 'paceline.client_id': id }),
  };
  return tracing.start({ name: 'paceline.infer', parent: traceParent, startUs: nowUs, attributes });
}

/** It was refused. Anything but a {@link ServingError} is a bug, which is no less the end. */
export function endRefused(span: Span, thrown: unknown, endUs: number): void {
  const bug = new ServingError('INTERNAL', 'an unexpected error; the server log has the details', { reason: 'internal' });
  span.end({ endUs, error: thrown instanceof ServingError ? thrown : bug });
}

/** It was accepted and has its last frame. */
export function endAnswered(span: Span, accepted: AcceptedRequest, answer: ReplyFrame, endUs: number): void {
  span.end({
    endUs,
    attributes: { ...nameOf(accepted), ...(answer.ok && timesOf(answer)) },
    ...(!answer.ok && { error: answer.error }),
  });
}

/** It was accepted, and its client left. */
export function endAbandoned(span: Span, accepted: AcceptedRequest, endUs: number): void {
  const error = new ServingError('CANCELLED', 'the client left', { reason: 'client_left' });
  span.end({ endUs, attributes: nameOf(accepted), error });
}

function nameOf({ number, model, rows }: AcceptedRequest): SpanAttributes {
  return { 'paceline.request': number, 'paceline.version': model.version, 'paceline.rows': rows };
}

/** What the worker and the lane said of it, as in a response with timings. */
function timesOf({ timings }: Extract<ReplyFrame, { ok: true }>): SpanAttributes {
  if (!timings) return {};
  const { queueNs, computeInputNs, computeInferNs, computeOutputNs, batchRows } = timings;
  return {
    'paceline.queue_us': queueNs / 1000,
    'paceline.compute_input_us': computeInputNs / 1000,
    'paceline.compute_infer_us': computeInferNs / 1000,
    'paceline.compute_output_us': computeOutputNs / 1000,
    'paceline.batch_rows': batchRows,
  };
}
