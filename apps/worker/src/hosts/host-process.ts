/**
 * One instance host as the worker sees it: the process, its socket, its shared-memory file and the frames under way.
 * Every frame that wants an answer is a `HostWork`; the host answers in order, so the oldest is the one it is busy with,
 * and how long it has been that is what supervision watches. When the host is gone, each work under way ends exactly
 * once through `onGone`.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import type { Clock } from '@paceline/clock';
import { ANNOUNCE_START, emptyFrame, FRAME } from '../host-protocol/frames.js';
import type { CopyCounter } from '../infer/copy-counter.js';
import { FrameReader } from './frame-reader.js';
import { SharedFile } from './shared-file.js';

/** Why a host ended, or is made to. */
export interface HostEnd {
  /**
   * `exited`: by itself, or killed from outside; `hung`: over the limit of a work; `unresponsive`: it did not answer a
   * ping or did not begin a work; `ended`: the worker had no more use for it.
   */
  readonly cause: 'exited' | 'hung' | 'unresponsive' | 'ended';
  /** Ends up in the errors of what was under way. */
  readonly text: string;
}

export interface HostWork {
  /** The host is killed when it is busy with this for longer. */
  readonly limitUs: number;
  /** The host is killed when nothing is before this and it has not begun with it for longer; undefined: it does not say. */
  readonly beginLimitUs?: number;
  /** What the host was doing, for messages: `a run of model 'm'`; `ping` for a ping. */
  readonly what: string;
  /** Any answer to it, `failed` included; `started` is not one. */
  onAnswer(frame: Buffer): void | Promise<void>;
  /** The host has gone. `started`: it had begun with this. */
  onGone(started: boolean, reason: string, cause?: HostEnd['cause']): void;
}

interface UnderWay {
  readonly sequence: number;
  readonly work: HostWork;
  slot: number | undefined;
}

export interface HostProcessOptions {
  readonly clock: Clock;
  /** Directory of a memory file system; "" = no shared memory. */
  readonly shmDirectory: string;
  readonly api: 'binding' | 'session';
  readonly entry: string;
  readonly copies: CopyCounter;
  readonly onExit: (host: HostProcess, end: HostEnd) => void;
}

const NODE_FLAGS = ['--v8-pool-size=0', '--max-semi-space-size=1', '--disable-warning=ExperimentalWarning'];

/** The compiled entry of the Node host, wherever this file itself runs from. */
export function defaultHostEntry(): string {
  return createRequire(import.meta.url).resolve('@paceline/worker/host');
}

export class HostProcess {
  readonly shared: SharedFile | undefined;
  readonly #child: ChildProcess;
  readonly #socket: Socket;
  readonly #underWay: UnderWay[] = [];
  readonly #freeSlots: number[] = [];
  readonly #ended: Promise<void>;
  #slots = 0;
  #sequence = 0;
  #oldestSinceUs = 0;
  #announced = 0;
  #gone = false;
  #killed: HostEnd | undefined;
  #lastAnswerUs: number;
  #lastWorkUs: number;

  constructor(private readonly options: HostProcessOptions) {
    this.#lastAnswerUs = this.#lastWorkUs = options.clock.nowUs();
    this.shared = options.shmDirectory === '' ? undefined : SharedFile.create(options.shmDirectory);
    const args = [...NODE_FLAGS, options.entry, `--api=${options.api}`, ...(this.shared ? ['--shm-fd=4'] : [])];
    // In this process's own session: where sessions share the processors as groups, priorities count inside one only.
    this.#child = spawn(process.execPath, args, {
      env: hostEnvironment(),
      stdio: ['ignore', 'ignore', 'inherit', 'pipe', ...(this.shared ? [this.shared.fd] : [])],
    });
    // Without descriptors left no pipe is made; the child's error event then says so.
    this.#socket = (this.#child.stdio?.[3] as Socket | undefined) ?? new Socket();
    const reader = new FrameReader((frame) => this.#onFrame(frame), options.copies);
    this.#socket.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        this.kill('exited', error instanceof Error ? error.message : String(error));
      }
    });
    this.#socket.on('error', () => undefined);
    this.#ended = this.#watchEnd();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Whether it can take work. */
  get alive(): boolean {
    return !this.#gone && this.#killed === undefined;
  }

  get idle(): boolean {
    return this.#underWay.length === 0;
  }

  /** Monotonic time of its last answer, microseconds. */
  get lastAnswerUs(): number {
    return this.#lastAnswerUs;
  }

  /** Monotonic time of its last answer to anything but a ping, microseconds. */
  get lastWorkUs(): number {
    return this.#lastWorkUs;
  }

  /** Number for the next frame; frames are sent in the order of their numbers. */
  nextSequence(): number {
    this.#sequence = this.#sequence === 0xffff_ffff ? 1 : this.#sequence + 1;
    return this.#sequence;
  }

  /** A slot of the shared file; it becomes the work's when passed to {@link send}, which frees it with the answer. */
  takeSlot(): number {
    return this.#freeSlots.pop() ?? this.#slots++;
  }

  giveSlot(slot: number): void {
    this.#freeSlots.push(slot);
  }

  /** Flags an execute needs so that this worker can tell whether it began. */
  get startFlag(): number {
    return this.shared ? 0 : ANNOUNCE_START;
  }

  /** Sends a frame that will be answered. On a host that is gone the work ends at once, not started. */
  send(frame: Buffer, sequence: number, work: HostWork, slot?: number): void {
    if (!this.alive) {
      queueMicrotask(() => work.onGone(false, this.#killed?.text ?? 'the instance host has ended'));
      return;
    }
    if (this.#underWay.length === 0) this.#oldestSinceUs = this.options.clock.nowUs();
    this.#underWay.push({ sequence, work, slot });
    this.#socket.write(frame);
  }

  /** The work the host is busy with and for how long, if any. */
  busy(nowUs: number): { readonly work: HostWork; readonly sequence: number; readonly forUs: number } | undefined {
    const oldest = this.#underWay[0];
    return oldest && { work: oldest.work, sequence: oldest.sequence, forUs: nowUs - this.#oldestSinceUs };
  }

  /** Whether it has begun with the work of that sequence, of those that say so. A system call. */
  hasBegun(sequence: number): boolean {
    return (this.shared ? this.shared.lastStarted() : this.#announced) === sequence;
  }

  /** Asks for a sign of life. */
  ping(limitUs: number): void {
    const sequence = this.nextSequence();
    this.send(emptyFrame(FRAME.ping, 0, sequence), sequence, pingWork(limitUs));
  }

  /** Withdraws an execute that was sent; it is answered as CANCELLED if it has not begun. */
  cancel(sequence: number): void {
    if (this.alive) this.#socket.write(emptyFrame(FRAME.cancel, 0, sequence));
  }

  /** Kills it, whatever it does. */
  kill(cause: HostEnd['cause'], text: string): void {
    if (this.#gone) return;
    this.#killed ??= { cause, text };
    this.#child.kill('SIGKILL');
  }

  /** Resolves when the process is gone and everything under way has ended. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  #onFrame(frame: Buffer): void {
    const sequence = frame.readUInt32LE(12);
    if (frame.readUInt32LE(4) === FRAME.started) {
      this.#announced = sequence;
      return;
    }
    const oldest = this.#underWay.shift();
    if (!oldest || oldest.sequence !== sequence) throw new Error(`instance host answered ${sequence} out of order`);
    const nowUs = this.options.clock.nowUs();
    this.#lastAnswerUs = nowUs;
    this.#oldestSinceUs = nowUs;
    if (oldest.work.what !== PING) this.#lastWorkUs = nowUs;
    const { slot } = oldest;
    const reading = oldest.work.onAnswer(frame);
    if (slot === undefined) return;
    if (reading) void reading.finally(() => this.#freeSlots.push(slot));
    else this.#freeSlots.push(slot);
  }

  /** Both ends are awaited: what the host wrote before it died still counts. */
  async #watchEnd(): Promise<void> {
    const socketClosed = new Promise<void>((resolve) => this.#socket.once('close', () => resolve()));
    const how = await new Promise<string>((resolve) => {
      this.#child.once('exit', (code, signal) => resolve(signal ? `was ended by ${signal}` : `exited with code ${code}`));
      this.#child.once('error', (error) => {
        this.#socket.destroy();
        resolve(`could not be started: ${error.message}`);
      });
    });
    await socketClosed;
    const end: HostEnd = this.#killed ?? { cause: 'exited', text: `the instance host ${how}` };
    this.#gone = true;
    const begun = this.shared ? this.shared.lastStarted() : this.#announced;
    this.shared?.close();
    for (const { sequence, work } of this.#underWay.splice(0)) work.onGone(sequence === begun, end.text, end.cause);
    this.options.onExit(this, end);
  }
}

const PING = 'ping';

function pingWork(limitUs: number): HostWork {
  return { limitUs, what: PING, onAnswer: () => undefined, onGone: () => undefined };
}

/** What a host inherits: nothing that would change how Node itself runs. */
function hostEnvironment(): NodeJS.ProcessEnv {
  // Without ORT_DISABLE_TELEMETRY the ONNX Runtime would report to its makers, and leave a file for each process.
  // GPUs are numbered in the order of the bus, as the driver's own tool lists them; by itself CUDA sorts them by speed.
  const env: NodeJS.ProcessEnv = { CUDA_DEVICE_ORDER: 'PCI_BUS_ID', ...process.env, MALLOC_ARENA_MAX: '2', ORT_DISABLE_TELEMETRY: '1' };
  delete env['NODE_OPTIONS'];
  delete env['NODE_V8_COVERAGE'];
  return env;
}
