/** Brings a model into a host, and says in our words what a host answers when something fails. */
import { ServingError } from '@paceline/protocol';
import { FRAME, jsonBody, jsonFrame } from '../host-protocol/frames.js';
import type { FailedMessage } from '../host-protocol/messages.js';
import type { HostProcess } from '../hosts/host-process.js';
import type { LoadedModel } from './loaded-model.js';

/**
 * Resolves when instance `id` of the host can execute. A host that dies of it marks the model as one that lives apart.
 * @throws ServingError with the runtime's text, or UNAVAILABLE when the host has gone
 */
export function loadInto(host: HostProcess, id: number, model: LoadedModel, device: string, limitUs: number): Promise<void> {
  const name = model.spec.model;
  return new Promise<void>((resolve, reject) => {
    const sequence = host.nextSequence();
    host.send(jsonFrame(FRAME.load, id, sequence, model.nextLoadMessage(device)), sequence, {
      limitUs,
      what: `loading model '${name}'`,
      onAnswer: (frame) => (frame.readUInt32LE(4) === FRAME.loaded ? resolve() : reject(failure(frame))),
      onGone: (begun, reason) => {
        if (begun) model.isolated = true;
        reject(new ServingError('UNAVAILABLE', `model '${name}' could not be loaded: ${reason}`, { reason: 'instance_host_lost' }));
      },
    });
  });
}

/** The error in a `failed` frame. */
export function failure(frame: Buffer): ServingError {
  const failed = jsonBody(frame) as FailedMessage;
  return new ServingError(failed.code, failed.message, { reason: failed.reason });
}
