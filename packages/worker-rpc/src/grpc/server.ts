/**
 * The worker's end of the stream: turns one call into a {@link SchedulerSession} of the {@link ServedWorker}. Questions
 * are answered in the order in which their answers are known.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { Clock } from '@paceline/clock';
import type { LinkIdentity } from '@paceline/link';
import { toServingError } from '@paceline/protocol';
import { writeServingError, type WireReader, type WireWriter } from '@paceline/protocol/wire';
import type { SchedulerSession, ServedWorker } from '../served-worker.js';
import { readFencedBatch } from './batches.js';
import { readLoadSpec, writeAnnouncement, writeHello, writeLoadReport } from './loads.js';
import { PeerStream, type PeerIdentity } from './peer-stream.js';
import { serverStream } from './raw-streams.js';
import { TO_SCHEDULER, TO_WORKER } from './service.js';
import { readEpoch, readLoadName, writeClaimed, writeCompletion, writeInstanceEvent, writeLoadName } from './words.js';

export interface ServedPorts {
  readonly served: ServedWorker;
  readonly identity: PeerIdentity;
  readonly clock: Clock;
  /** A stream was refused or ended; for the log. */
  onEnd?(scheduler: string | undefined, reason: string): void;
}

/** A connection that the worker may end. */
export interface ServedConnection {
  end(reason: string): void;
}

/** Handles one call of `Connect` to its end, which it may bring about. */
export function serveScheduler(call: ServerDuplexStream<Buffer, Buffer>, ports: ServedPorts): ServedConnection {
  return new SchedulerConnection(call, ports).stream;
}

class SchedulerConnection {
  readonly stream: PeerStream;
  #session: SchedulerSession | undefined;

  constructor(
    call: ServerDuplexStream<Buffer, Buffer>,
    private readonly ports: ServedPorts,
  ) {
    this.stream = new PeerStream(
      serverStream(call),
      'listener',
      ports.identity,
      {
        onPeer: (peer) => this.#onPeer(peer),
        onWord: (kind, reader) => this.#onWord(kind, reader),
        onEnd: (reason) => this.#onEnd(reason),
      },
      ports.clock,
    );
  }

  #onPeer(peer: LinkIdentity): string | undefined {
    if (peer.role !== 'scheduler') return `a worker is reached by schedulers, not by a ${peer.role}`;
    const session = (this.#session = this.#sessionOf(peer.id));
    const hello = this.ports.served.connect(session);
    this.#tell(TO_SCHEDULER.hello, (to) => writeHello(to, hello));
    return undefined;
  }

  #sessionOf(scheduler: string): SchedulerSession {
    return {
      scheduler,
      onModel: (model) => this.#tell(TO_SCHEDULER.model, (to) => writeAnnouncement(to, model)),
      onModelGone: (model, version, generation) =>
        this.#tell(TO_SCHEDULER.modelGone, (to) => writeLoadName(to, { model, version, generation })),
      onInstance: (event) => this.#tell(TO_SCHEDULER.instance, (to) => writeInstanceEvent(to, event)),
      onStarted: (batchId) => this.stream.outbox.add(TO_SCHEDULER.started, (to) => to.varint(batchId), true),
      onCompletion: (completion) => this.#tell(TO_SCHEDULER.completion, (to) => writeCompletion(to, completion)),
      onDraining: () => this.#tell(TO_SCHEDULER.draining),
    };
  }

  #onWord(kind: number, reader: WireReader): void {
    const { served } = this.ports;
    const session = this.#session!;
    switch (kind) {
      case TO_WORKER.execute:
        return served.execute(session, readFencedBatch(reader));
      case TO_WORKER.load: {
        const id = reader.varint('question');
        const fingerprint = reader.string('fingerprint');
        const spec = readLoadSpec(reader);
        return this.#answer(id, served.load(session, spec, fingerprint), (report) =>
          this.#tell(TO_SCHEDULER.loaded, (to) => {
            to.varint(id);
            writeLoadReport(to, report);
          }),
        );
      }
      case TO_WORKER.activate: {
        const id = reader.varint('question');
        const { model, version, generation } = readLoadName(reader);
        return this.#answer(
          id,
          run(() => served.activate(model, version, generation)),
        );
      }
      case TO_WORKER.retire: {
        const id = reader.varint('question');
        const { model, version, generation } = readLoadName(reader);
        return this.#answer(id, served.retire(model, version, generation));
      }
      case TO_WORKER.release: {
        const { model, version, generation } = readLoadName(reader);
        return served.release(model, version, generation);
      }
      case TO_WORKER.claim: {
        const id = reader.varint('question');
        const claimed = served.claim(reader.varint('partition'), readEpoch(reader));
        return this.#tell(TO_SCHEDULER.claimed, (to) => {
          to.varint(id);
          writeClaimed(to, claimed);
        });
      }
      default:
        return reader.fail(`word ${kind} is none of a scheduler's`);
    }
  }

  #answer<T>(id: number, work: Promise<T>, say = (_: T): void => this.#tell(TO_SCHEDULER.done, (to) => to.varint(id))): void {
    work.then(say, (error: unknown) =>
      this.#tell(TO_SCHEDULER.failed, (to) => {
        to.varint(id);
        writeServingError(to, toServingError(error));
      }),
    );
  }

  #tell(kind: number, write?: (writer: WireWriter) => void): void {
    this.stream.outbox.add(kind, write);
  }

  #onEnd(reason: string): void {
    const session = this.#session;
    this.#session = undefined;
    if (session) this.ports.served.disconnect(session);
    this.ports.onEnd?.(session?.scheduler, reason);
  }
}

/** Errors of `act` as a rejection. */
async function run(act: () => void): Promise<void> {
  act();
}
