/**
 * The scheduler's end of the stream to one worker: dials until it is closed, turns words into calls of the listener, and
 * questions into promises. A question whose connection ends is answered by that; nothing is asked twice.
 */
import { Client, credentials, type ChannelCredentials } from '@grpc/grpc-js';
import type { Clock, Timer } from '@paceline/clock';
import { ServingError } from '@paceline/protocol';
import { readServingError, type WireReader, type WireWriter } from '@paceline/protocol/wire';
import type { Claimed, ConnectWorker, FencedBatch, RemoteWorker, RemoteWorkerListener } from '../cluster-worker.js';
import type { LoadReport, LoadSpec } from '../worker-link.js';
import { writeFencedBatch } from './batches.js';
import { readAnnouncement, readHello, readLoadReport, writeLoadSpec } from './loads.js';
import { PeerStream, type PeerIdentity } from './peer-stream.js';
import { clientStream } from './raw-streams.js';
import { channelOptions, CONNECT_PATH, MAX_MESSAGE_BYTES, TO_SCHEDULER, TO_WORKER } from './service.js';
import { readClaimed, readCompletion, readInstanceEvent, readLoadName, writeEpoch, writeLoadName } from './words.js';

export interface GrpcWorkerOptions {
  /** Of the scheduler process. */
  readonly identity: PeerIdentity;
  readonly clock: Clock;
  /** Default: plain HTTP/2. */
  readonly credentials?: ChannelCredentials;
  /** A connection could not be had or was refused; for the log. Called at each attempt. */
  onFailure?(worker: string, address: string, reason: string): void;
}

/** How long after a connection ended or could not be had the next is tried; doubled each time. */
const FIRST_REDIAL_US = 50_000;
const LAST_REDIAL_US = 1_000_000;

/** @returns what dials workers over gRPC on behalf of one scheduler process */
export function connectGrpcWorker(options: GrpcWorkerOptions): ConnectWorker {
  return (worker, address, listener) => new GrpcRemoteWorker(worker, address, listener, options);
}

interface Question {
  readonly resolve: (value: never) => void;
  readonly reject: (error: ServingError) => void;
}

/** Of the tensors of all samples; the rest of a message is for the configuration. */
const MAX_WARMUP_BYTES = MAX_MESSAGE_BYTES - 16 * 1024 * 1024;

const same = (bytes: Buffer): Buffer => bytes;

class GrpcRemoteWorker implements RemoteWorker {
  readonly #questions = new Map<number, Question>();
  #nextQuestion = 1;
  #stream: PeerStream | undefined;
  #connected = false;
  #closed = false;
  #redial: Timer | undefined;
  #redialUs = FIRST_REDIAL_US;

  constructor(
    readonly worker: string,
    private readonly address: string,
    private readonly listener: RemoteWorkerListener,
    private readonly options: GrpcWorkerOptions,
  ) {
    this.#dial();
  }

  get connected(): boolean {
    return this.#connected;
  }

  load(spec: LoadSpec, fingerprint: string): Promise<LoadReport> {
    const bytes = (spec.warmup ?? []).reduce((sum, { inputs }) => sum + inputs.reduce((all, { data }) => all + data.length, 0), 0);
    if (bytes > MAX_WARMUP_BYTES) {
      const text = `the warmup samples of model '${spec.model}' have ${bytes} bytes; a worker takes at most ${MAX_WARMUP_BYTES} with a load`;
      return Promise.reject(new ServingError('INVALID_ARGUMENT', text, { reason: 'warmup_too_large' }));
    }
    return this.#ask(TO_WORKER.load, (to) => {
      to.string(fingerprint);
      writeLoadSpec(to, spec);
    });
  }

  activate(model: string, version: string, generation: number): Promise<void> {
    return this.#ask(TO_WORKER.activate, (to) => writeLoadName(to, { model, version, generation }));
  }

  retire(model: string, version: string, generation: number): Promise<void> {
    return this.#ask<undefined>(TO_WORKER.retire, (to) => writeLoadName(to, { model, version, generation })).catch(() => undefined);
  }

  release(model: string, version: string, generation: number): void {
    this.#tell(TO_WORKER.release, (to) => writeLoadName(to, { model, version, generation }));
  }

  claim(partition: number, epoch: FencedBatch['epoch']): Promise<Claimed> {
    return this.#ask(TO_WORKER.claim, (to) => {
      to.varint(partition);
      writeEpoch(to, epoch);
    });
  }

  execute(batch: FencedBatch): void {
    this.#tell(TO_WORKER.execute, (to) => writeFencedBatch(to, batch));
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#redial?.cancel();
    this.#stream?.end('closed');
    return Promise.resolve();
  }

  #dial(): void {
    const { identity, clock } = this.options;
    const options = { ...channelOptions, 'grpc.use_local_subchannel_pool': 1, 'grpc.enable_retries': 0 };
    const client = new Client(this.address, this.options.credentials ?? credentials.createInsecure(), options);
    const call = client.makeBidiStreamRequest<Buffer, Buffer>(CONNECT_PATH, same, same);
    const stream = new PeerStream(
      clientStream(call, () => client.close()),
      'dialer',
      { ...identity, expected: { role: 'worker', id: this.worker, address: this.address } },
      {
        onPeer: () => undefined,
        onWord: (kind, reader) => this.#onWord(kind, reader),
        onEnd: (reason) => this.#onEnd(reason),
      },
      clock,
    );
    this.#stream = stream;
  }

  #onEnd(reason: string): void {
    const wasUp = this.#connected;
    this.#connected = false;
    this.#stream = undefined;
    const lost = this.#lost();
    for (const question of this.#questions.values()) question.reject(lost);
    this.#questions.clear();
    if (!this.#closed) {
      this.#redial = this.options.clock.setTimer(this.#redialUs, () => this.#dial());
      this.#redialUs = Math.min(LAST_REDIAL_US, 2 * this.#redialUs);
      if (!wasUp) this.options.onFailure?.(this.worker, this.address, reason);
    }
    if (wasUp) this.listener.onDown(this.worker, reason);
  }

  #onWord(kind: number, reader: WireReader): void {
    const { listener, worker } = this;
    switch (kind) {
      case TO_SCHEDULER.completion:
        return listener.onCompletion(worker, readCompletion(reader));
      case TO_SCHEDULER.started:
        return listener.onStarted(worker, reader.varint('batch'));
      case TO_SCHEDULER.hello: {
        const hello = readHello(reader);
        this.#connected = true;
        this.#redialUs = FIRST_REDIAL_US;
        return listener.onUp(hello);
      }
      case TO_SCHEDULER.model:
        return listener.onModel(worker, readAnnouncement(reader));
      case TO_SCHEDULER.modelGone: {
        const { model, version, generation } = readLoadName(reader);
        return listener.onModelGone(worker, model, version, generation);
      }
      case TO_SCHEDULER.instance:
        return listener.onInstance(worker, readInstanceEvent(reader));
      case TO_SCHEDULER.draining:
        return listener.onDraining(worker);
      case TO_SCHEDULER.done:
        return this.#answered(reader, () => undefined);
      case TO_SCHEDULER.loaded:
        return this.#answered(reader, readLoadReport);
      case TO_SCHEDULER.claimed:
        return this.#answered(reader, readClaimed);
      case TO_SCHEDULER.failed: {
        const question = this.#take(reader);
        return question?.reject(readServingError(reader));
      }
      default:
        return reader.fail(`word ${kind} is none of a worker's`);
    }
  }

  #ask<T>(kind: number, write: (writer: WireWriter) => void): Promise<T> {
    if (!this.#connected || !this.#stream) return Promise.reject(this.#lost());
    const id = this.#nextQuestion++;
    return new Promise<T>((resolve, reject) => {
      this.#questions.set(id, { resolve, reject });
      this.#tell(kind, (to) => {
        to.varint(id);
        write(to);
      });
    });
  }

  #answered(reader: WireReader, read: (reader: WireReader) => unknown): void {
    const question = this.#take(reader);
    question?.resolve(read(reader) as never);
  }

  #take(reader: WireReader): Question | undefined {
    const id = reader.varint('question');
    const question = this.#questions.get(id);
    this.#questions.delete(id);
    return question ?? reader.fail(`question ${id} was not asked`);
  }

  #tell(kind: number, write: (writer: WireWriter) => void): void {
    if (this.#connected) this.#stream?.outbox.add(kind, write);
  }

  #lost(): ServingError {
    return new ServingError('UNAVAILABLE', `worker ${this.worker} at ${this.address} is not connected`, { reason: 'worker_lost' });
  }
}
