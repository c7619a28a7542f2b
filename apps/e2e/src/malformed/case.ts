/** What a generated attack is: plain data, so that it can be printed, counted and sent again. */

export const FAMILIES = ['json', 'binary', 'framing', 'compression', 'grpc'] as const;
export type Family = (typeof FAMILIES)[number];

interface CaseBase {
  readonly family: Family;
  /** The mutations in words. */
  readonly what: string;
}

/** Bytes for a connection of their own to the HTTP port or, where `port` says so, to the gRPC port. */
export interface SocketCase extends CaseBase {
  readonly kind: 'socket';
  readonly port: 'http' | 'grpc';
  /** Written one after the other, each once the one before it has left. */
  readonly pieces: readonly Buffer[];
  /**
   * Whether the server must answer: `answer` = with one; `close` = it may also end the connection without one (framing that
   * cannot be answered); `nothing` = the request is incomplete, so the client leaves after the last byte.
   */
  readonly expects: 'answer' | 'close' | 'nothing';
  /** Answer statuses from 500 on that are right here, with the reason in `what`. */
  readonly allowed?: readonly number[];
}

/** One HTTP/2 stream to the gRPC port. */
export interface GrpcCase extends CaseBase {
  readonly kind: 'grpc';
  /** Beside those that every call has; a value of undefined takes one of those away. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Everything behind the headers, length prefixes included. */
  readonly body: Buffer;
  /** The client resets the stream after sending instead of waiting. */
  readonly leaves: boolean;
  /** The server may reset the stream without a status: the call is wrong as HTTP/2. */
  readonly mayReset: boolean;
  /** Statuses beyond those of a client's fault that are right here, with the reason in `what`. */
  readonly allowed?: readonly number[];
}

export type MalformedCase = SocketCase | GrpcCase;
