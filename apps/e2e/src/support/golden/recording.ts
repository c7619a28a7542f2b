/**
 * The recorded exchanges as they lie in `src/golden/*.jsonl`: one object a line, each an exchange or several in order.
 * JSON is read with exact integers, so that a digit lost beyond 2^53 is a difference.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseJsonExact } from '@paceline/tensor';

export type Json = null | boolean | number | bigint | string | readonly Json[] | { readonly [key: string]: Json };

export interface HttpCall {
  readonly method: string;
  readonly path: string;
  /** Beside Host and Content-Length, which are added unless given (or the body is chunked already). */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly bodyBase64?: string;
}

export interface GrpcCall {
  /** Full method name, `/package.Service/Method`. */
  readonly method: string;
  /** The serialised request of a unary call, base64. */
  readonly message?: string;
  /** The serialised requests of a stream, base64. */
  readonly messages?: readonly string[];
  /** Whether a stream's request waits for the answers to the one before. Default true. */
  readonly lockstep?: boolean;
  /** Answers to wait for before the next request. Default 1. */
  readonly responsesPerRequest?: number | readonly number[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly compression?: 'gzip' | 'deflate';
}

/** An HTTP answer, without what says nothing about the protocol. */
export interface HttpAnswer {
  /** null = the connection ended without an answer. */
  readonly status: number | null;
  /** Of successes only: errors are JSON here, whatever the recorded server called them. */
  readonly contentType?: string;
  readonly contentEncoding?: string;
  /** The body: as JSON (the JSON part where binary data follow), else as text, else as bytes. */
  readonly json?: Json;
  readonly text?: string;
  readonly base64?: string;
  /** What follows the JSON part when the answer has the header Inference-Header-Content-Length. */
  readonly binaryBase64?: string;
}

/** A gRPC answer; messages in protobuf's JSON form with the field names of the .proto files. */
export interface GrpcAnswer {
  readonly code: string;
  readonly details: string;
  readonly message?: Json;
  readonly messages?: readonly Json[];
}

export type Answer = HttpAnswer | GrpcAnswer;

interface Comparison {
  /** JSON paths from `$` (the body) that are not compared; `[*]` and `.*` stand for every index or key. */
  readonly ignore?: readonly string[];
  /** JSON paths of arrays whose order means nothing. */
  readonly unordered?: readonly string[];
  /** The models of a repository index that are compared. */
  readonly pickNames?: readonly string[];
}

export type Step = Comparison &
  ({ readonly http: HttpCall; readonly answer: HttpAnswer } | { readonly grpc: GrpcCall; readonly answer: GrpcAnswer });

export interface Recording {
  readonly id: string;
  readonly group: string;
  readonly note: string;
  readonly steps: readonly Step[];
}

/** A step that Paceline answers otherwise on purpose. Invariant: `answer` is exactly what it answers. */
export interface AcceptedDifference {
  readonly id: string;
  /** Index in the recording's steps. */
  readonly step: number;
  /** A key of REASONS. */
  readonly reason: string;
  readonly answer: Answer;
}

const { rawJSON: rawJson } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

function readLines<T>(file: string): readonly T[] {
  const text = readFileSync(new URL(`../../golden/${file}`, import.meta.url), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => parseJsonExact(line) as T);
}

/** @param name file in `src/golden`, without `.jsonl` */
export function readRecordings(name: string): readonly Recording[] {
  return readLines<Recording>(`${name}.jsonl`);
}

export function readAccepted(name: string): readonly AcceptedDifference[] {
  return readLines<AcceptedDifference>(`${name}.accepted.jsonl`);
}

/** Puts `accepted` in the place of the list. Integers that no double holds keep their digits. */
export function writeAccepted(name: string, accepted: readonly AcceptedDifference[]): void {
  const exact = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? rawJson(value.toString()) : value);
  const text = accepted.map((difference) => `${JSON.stringify(difference, exact)}\n`).join('');
  writeFileSync(new URL(`../../golden/${name}.accepted.jsonl`, import.meta.url), text);
}
