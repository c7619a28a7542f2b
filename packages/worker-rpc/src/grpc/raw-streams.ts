/** Both ends of a call of grpc-js as {@link RawStream}. */
import { status, type ClientDuplexStream, type ServerDuplexStream, type ServiceError } from '@grpc/grpc-js';
import type { RawStream } from './peer-stream.js';

/** @param release called when the stream is over: frees the connection */
export function clientStream(call: ClientDuplexStream<Buffer, Buffer>, release: () => void): RawStream {
  let over = false;
  const end = (then?: (reason: string) => void, reason = ''): void => {
    if (over) return;
    over = true;
    release();
    then?.(reason);
  };
  return {
    write: (message) => over || call.write(message),
    onDrain: (then) => void call.on('drain', then),
    onMessage: (then) => void call.on('data', then),
    onEnd(then) {
      call.on('error', (error: ServiceError) => end(then, error.details || error.message));
      call.on('end', () => end(then, 'the worker ended the connection'));
    },
    close() {
      if (over) return;
      over = true;
      call.cancel();
      release();
    },
  };
}

export function serverStream(call: ServerDuplexStream<Buffer, Buffer>): RawStream {
  let over = false;
  return {
    write: (message) => over || call.write(message),
    onDrain: (then) => void call.on('drain', then),
    onMessage: (then) => void call.on('data', then),
    onEnd(then) {
      const end = (reason: string): void => {
        if (over) return;
        over = true;
        call.end();
        then(reason);
      };
      call.on('error', (error: Error) => end(error.message));
      call.on('cancelled', () => end('the scheduler ended the connection'));
      call.on('end', () => end('the scheduler ended the connection'));
    },
    close(reason) {
      if (over) return;
      over = true;
      call.emit('error', { code: status.UNAVAILABLE, details: reason });
    },
  };
}
