/** What a lane tells the clients it cannot serve; Triton's texts where it has one. */
import { ServingError, type Envelope } from '@paceline/protocol';
import { levelOf, queueTimeoutOf, type BatchPolicy, type Shed } from '@paceline/core';

function queueFull(envelope: Envelope, shed: Shed): ServingError {
  return new ServingError(shed.code, `[request id: ${envelope.clientId || '<id_unknown>'}] Exceeds maximum queue size`, {
    reason: shed.reason,
    retryAfterMs: shed.retryAfterMs,
  });
}

/** Refused at the door. */
export function refused(envelope: Envelope, objectiveUs: number, shed: Shed): ServingError {
  return shed.reason === 'queue_full' ? queueFull(envelope, shed) : objectiveRefused(envelope, objectiveUs, shed);
}

/** Refused at the door: so many wait before it that it could not be answered in time. */
function objectiveRefused(envelope: Envelope, objectiveUs: number, shed: Shed): ServingError {
  return new ServingError(
    shed.code,
    `[request id: ${envelope.clientId || '<id_unknown>'}] model '${envelope.model}' cannot answer within its latency objective of ${objectiveUs / 1000} ms: ${shed.limit} requests wait already`,
    { reason: shed.reason, retryAfterMs: shed.retryAfterMs },
  );
}

/** Refused after it has waited. */
export function objectiveMissed(envelope: Envelope, objectiveUs: number, retryAfterMs: number): ServingError {
  return new ServingError(
    'DEADLINE_EXCEEDED',
    `[request id: ${envelope.clientId || '<id_unknown>'}] model '${envelope.model}' can no longer answer within its latency objective of ${objectiveUs / 1000} ms`,
    { reason: 'latency_objective', retryAfterMs },
  );
}

export function queueTimeout(envelope: Envelope, policy: BatchPolicy): ServingError {
  const level = policy.queueByLevel.get(levelOf(policy, envelope.priority)) ?? policy.defaultQueue;
  const ownUs = queueTimeoutOf(level, envelope.timeoutUs);
  const rejects = ownUs > 0 && level.timeoutAction === 'REJECT';
  const limitUs = rejects ? ownUs : Math.max(ownUs, policy.queueTimeoutUs);
  let setBy = 'the server (--request-timeout-ms)';
  if (rejects)
    setBy =
      ownUs === level.defaultTimeoutUs ? "default_timeout_microseconds of the model's queue policy" : "the request's parameter 'timeout'";
  return new ServingError(
    'DEADLINE_EXCEEDED',
    `Request timeout expired: it was not executed within ${limitUs} us, the limit set by ${setBy}`,
    {
      reason: 'queue_timeout',
    },
  );
}

export function noInstance(envelope: Envelope): ServingError {
  return new ServingError(
    'UNAVAILABLE',
    `model '${envelope.model}' version ${envelope.version} has no healthy instance; the request timed out waiting for one`,
    {
      reason: 'no_healthy_instance',
      retryAfterMs: 1000,
    },
  );
}

/** The request ran alone and its instance died, not for the first time: to try again would only kill another one. */
export function instanceKilled(envelope: Envelope, instance: string, cause: ServingError | undefined): ServingError {
  // Ended by us for its time, which is no crash: the worker's words name the limit.
  if (cause?.reason === 'execute_limit') return cause;
  return new ServingError(
    'INTERNAL',
    `model instance '${instance}' of '${envelope.model}' died while it executed this request alone, after it had died with it before`,
    {
      reason: 'instance_died',
    },
  );
}

/** The model was reloaded with another signature while the request waited. */
export function reloaded(envelope: Envelope, detail: string): ServingError {
  return new ServingError('UNAVAILABLE', `model '${envelope.model}' was reloaded while the request waited, and ${detail}`, {
    reason: 'model_reloaded',
  });
}

export function modelFailed(envelope: Envelope): ServingError {
  return new ServingError('INTERNAL', `model '${envelope.model}' failed to execute the request`, { reason: 'model_failed' });
}

/** A version that takes no requests (any more). */
export function notReady(model: string, version: string): ServingError {
  return new ServingError('UNAVAILABLE', `Request for unknown model: '${model}' version ${version} is not at ready state`, {
    reason: 'model_not_ready',
  });
}
