/**
 * Decodes large JSON bodies in worker threads, so that one client's megabytes do not hold up everybody's microseconds.
 * Invariant: the answer is what the same decoding on the main thread would have given, errors included. Threads start
 * with the first large body and end when none came for a while.
 */
import { ServingError, type ErrorCode } from '@paceline/protocol';
import { Piscina } from 'piscina';
import type { DecodedInfer, InferTarget } from './infer-json.js';
import type { JsonOffload } from './infer-route.js';

/** What a worker is asked. */
export interface JsonTask {
  /** A copy of its own, moved to the worker. */
  readonly json: Uint8Array;
  /** Whether the client sent an Inference-Header-Content-Length. */
  readonly hasTail: boolean;
  readonly target: InferTarget;
}

/** What it answers; a refusal travels as plain fields because classes do not survive the trip. */
export type JsonTaskResult =
  | { readonly ok: true; readonly decoded: DecodedInfer }
  | {
      readonly ok: false;
      readonly code: ErrorCode;
      readonly message: string;
      readonly reason: string;
      readonly httpStatus: number | undefined;
    };

export interface JsonOffloadOptions {
  /** JSON parts of at least this many bytes leave the main thread. */
  readonly minBytes?: number;
  readonly maxThreads?: number;
  /** The compiled worker, when it does not lie beside this file. */
  readonly workerUrl?: URL;
}

const IDLE_MS = 10_000;

export class PiscinaJsonOffload implements JsonOffload {
  readonly minBytes: number;
  readonly #pool: Piscina<JsonTask, JsonTaskResult>;

  constructor(options: JsonOffloadOptions = {}) {
    this.minBytes = options.minBytes ?? 256 * 1024;
    this.#pool = new Piscina({
      filename: (options.workerUrl ?? new URL('./json-offload.worker.js', import.meta.url)).href,
      minThreads: 0,
      maxThreads: options.maxThreads ?? 2,
      idleTimeout: IDLE_MS,
    });
  }

  async decode(json: Buffer, hasTail: boolean, target: InferTarget): Promise<DecodedInfer> {
    // A copy, because the body lies in a buffer that others may share and that must not be moved away.
    const copy = new Uint8Array(json);
    const result = await this.#pool.run({ json: copy, hasTail, target }, { transferList: [copy.buffer] });
    if (result.ok) return result.decoded;
    const { code, message, reason, httpStatus } = result;
    throw new ServingError(code, message, { reason, ...(httpStatus !== undefined && { httpStatus }) });
  }

  /** Ends the threads. */
  close(): Promise<void> {
    return this.#pool.destroy();
  }
}
