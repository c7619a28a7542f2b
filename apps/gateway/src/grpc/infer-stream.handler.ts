/**
 * ModelStreamInfer: many requests on one stream. Responses of models with one response per request go out in the order of
 * their requests; those of decoupled models as they come. A failed request is a response with an error message and the
 * stream lives on, unless the client asked for real status codes with the metadata `triton_grpc_error: true`.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { systemClock } from '@paceline/clock';
import {
  decodeModelInferRequest,
  encodeModelStreamInferResponse,
  toServingError,
  type ReplyFrame,
  type ServedModel,
  ServingError,
  type WireInferRequest,
} from '@paceline/protocol';
import type { AccessPolicy } from '../access/access-policy.js';
import { INFER } from '../access/actions.js';
import type { Grant } from '../access/grant.js';
import { admitCall } from '../access/grpc-access.js';
import type { InferCall } from '../infer/infer-service.js';
import { replyTimingParameters, wantsTimings } from '../infer/reply-timings.js';
import { limitOfCall } from '../infer/time-limit.js';
import { toGrpcStatus } from './grpc-status.js';
import { toInferRequest } from './infer-request.js';
import { isDecoupled, type InferRpcOptions } from './infer.handler.js';
import { EMPTY_FINAL_RESPONSE } from './request-parameters.js';
import { RequestNote } from './request-note.js';
import type { Shutdown } from './shutdown.js';

type InferStream = ServerDuplexStream<Buffer, Buffer>;

/** Requests of one stream that may be unanswered before it reads on. */
const MAX_UNANSWERED = 256;

/** A request of the stream, from its arrival until its last response has been written. */
interface Slot {
  call: InferCall | undefined;
  /** Responses that wait for earlier requests. */
  readonly held: Buffer[];
  done: boolean;
  readonly ordered: boolean;
  /** Its responses say where the time went. */
  readonly timed: boolean;
  readonly note: RequestNote;
}

/** @param shutdown ends each stream once what it had asked has been answered. */
export function modelStreamInfer(options: InferRpcOptions, shutdown: Shutdown): (stream: InferStream) => void {
  return (stream) => {
    const asking = options.access?.isOpen('grpc') === false ? options.access : undefined;
    let grant: Grant | undefined;
    try {
      grant = asking && admitCall(asking, INFER, stream);
    } catch (error) {
      stream.emit('error', toGrpcStatus(error, options.logger, 'ModelStreamInfer'));
      return;
    }
    const session = new StreamSession(stream, options, asking, grant);
    stream.once(
      'close',
      shutdown.onShutdown(() => session.drain()),
    );
  };
}

class StreamSession {
  /** In the order of arrival. */
  readonly #slots: Slot[] = [];
  readonly #realStatus: boolean;
  #inputEnded = false;
  #draining = false;
  #closed = false;

  constructor(
    private readonly stream: InferStream,
    private readonly options: InferRpcOptions,
    private readonly access: AccessPolicy | undefined,
    /** From the opening of the stream, for the first request; the others ask anew, so that a key can be revoked. */
    private opening: Grant | undefined,
  ) {
    this.#realStatus = stream.metadata.get('triton_grpc_error')[0] === 'true';
    stream.on('data', (message: Buffer) => this.onRequest(message));
    stream.on('end', () => {
      this.#inputEnded = true;
      this.flush();
    });
    stream.on('drain', () => this.flush());
    stream.on('cancelled', () => this.close());
    stream.on('error', () => this.close());
  }

  /** Takes no more requests, answers those it has, and ends with a status that tells the client to go elsewhere. */
  drain(): void {
    this.#draining = true;
    this.flush();
  }

  private onRequest(message: Buffer): void {
    if (this.#closed || this.#draining) return;
    const note = new RequestNote(this.options, this.stream, message.length);
    let wire: WireInferRequest;
    try {
      wire = decodeModelInferRequest(message);
    } catch (error) {
      note.failed(toServingError(error));
      this.fail(error);
      return;
    }
    let model: ServedModel | undefined;
    let slot: Slot | undefined;
    try {
      const grant = this.opening ?? (this.access && admitCall(this.access, INFER, this.stream));
      this.opening = undefined;
      note.read(wire);
      grant?.requireModel(wire.modelName);
      model = this.options.catalog.resolve(wire.modelName, wire.modelVersion);
      note.resolved(model);
      const refused = this.options.inferHandler.precheck?.(model);
      if (refused) throw refused;
      const request = note.inTrace(toInferRequest(wire, model));
      const timed = wantsTimings(request.parameters);
      const accepted: Slot = { call: undefined, held: [], done: false, ordered: !isDecoupled(model), timed, note };
      slot = accepted;
      this.#slots.push(accepted);
      const { inferHandler, catalog } = this.options;
      const handler = grant?.meter(inferHandler, catalog) ?? inferHandler;
      const limit = limitOfCall(this.stream.getDeadline(), Date.now(), (this.options.clock ?? systemClock).nowUs());
      accepted.call = handler.infer(request, (frame) => this.onFrame(accepted, wire, frame), limit);
      note.accepted(accepted.call);
    } catch (error) {
      slot ??= this.refusedSlot(note);
      this.refuse(slot, wire, toServingError(error), error);
    }
    if (this.#slots.length >= MAX_UNANSWERED) this.stream.pause();
  }

  private refusedSlot(note: RequestNote): Slot {
    const slot: Slot = { call: undefined, held: [], done: false, ordered: true, timed: false, note };
    this.#slots.push(slot);
    return slot;
  }

  private onFrame(slot: Slot, wire: WireInferRequest, frame: ReplyFrame): void {
    if (this.#closed || slot.done) return;
    const model = slot.call!.model;
    slot.note.frame(frame);
    if (!frame.ok && this.#realStatus) {
      slot.note.failed(frame.error);
      this.fail(frame.error);
      return;
    }
    slot.done = frame.final;
    const final = { triton_final_response: frame.final };
    const parameters = frame.ok && slot.timed && frame.timings ? { ...final, ...replyTimingParameters(frame.timings) } : final;
    const about = { modelName: model.name, id: wire.id, parameters };
    if (!frame.ok) {
      this.hold(slot, encodeModelStreamInferResponse(frame.error.message, { ...about, modelVersion: '', outputs: [] }));
      slot.note.failed(frame.error);
    } else if (frame.outputs.length > 0 || !frame.final || slot.ordered || wire.parameters.get(EMPTY_FINAL_RESPONSE) === true) {
      this.hold(slot, encodeModelStreamInferResponse('', { ...about, modelVersion: model.version, outputs: frame.outputs }));
    }
    if (frame.ok && frame.final) slot.note.succeeded();
    this.flush();
  }

  private hold(slot: Slot, response: Buffer): void {
    slot.held.push(response);
    slot.note.sent(response.length);
  }

  /** A request that never ran: its response names neither model nor finality. */
  private refuse(slot: Slot, wire: WireInferRequest, error: ServingError, thrown: unknown): void {
    slot.note.failed(error);
    if (this.#realStatus || error !== thrown) {
      this.fail(thrown);
      return;
    }
    slot.done = true;
    slot.held.push(encodeModelStreamInferResponse(error.message, { modelName: '', modelVersion: '', id: wire.id, outputs: [] }));
    this.flush();
  }

  /** Writes what may go, ends the stream after the last response, and reads on once there is room. */
  private flush(): void {
    if (this.#closed) return;
    let first = 0;
    for (; first < this.#slots.length && this.#slots[first]!.done; first += 1) this.write(this.#slots[first]!);
    this.#slots.splice(0, first);
    const [head] = this.#slots;
    if (head) this.write(head);
    for (let i = 1; i < this.#slots.length; i += 1) {
      const slot = this.#slots[i]!;
      if (!slot.ordered) {
        this.write(slot);
        if (slot.done) this.#slots.splice(i--, 1);
      }
    }
    if (this.#slots.length === 0 && this.#draining && !this.#inputEnded) {
      this.fail(new ServingError('UNAVAILABLE', 'Server is stopping and accepts no new requests', { reason: 'draining' }));
    } else if (this.#slots.length === 0 && this.#inputEnded) {
      this.#closed = true;
      this.stream.end();
    } else if (this.#slots.length < MAX_UNANSWERED && !this.stream.writableNeedDrain && this.stream.isPaused()) {
      this.stream.resume();
    }
  }

  private write(slot: Slot): void {
    for (const response of slot.held) if (!this.stream.write(response)) this.stream.pause();
    slot.held.length = 0;
  }

  /** Ends the whole stream with the status of `error`. */
  private fail(error: unknown): void {
    if (this.#closed) return;
    this.close();
    this.stream.emit('error', toGrpcStatus(error, this.options.logger, 'ModelStreamInfer'));
  }

  private close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const slot of this.#slots) {
      slot.call?.cancel();
      slot.note.clientLeft();
    }
    this.#slots.length = 0;
  }
}
