/** Writes a reply to a socket: one system call for small ones, no copy of large tensors. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { JSON_HEADERS, type HttpReply } from './infer-reply.js';

/** Up to this many bytes, head, text and chunks are joined before they are written. */
const JOIN_BYTES = 16 * 1024;
const OK_JSON = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ';

function headOf(reply: HttpReply, contentBytes: number, dateLine: string, close: boolean): string {
  const tail = close ? `${contentBytes}\r\n${dateLine}Connection: close\r\n\r\n` : `${contentBytes}\r\n${dateLine}\r\n`;
  if (reply.status === 200 && reply.headers === JSON_HEADERS) return OK_JSON + tail;
  let head = `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status] ?? 'Unknown'}\r\n`;
  for (const [name, value] of reply.headers) head += `${name}: ${value}\r\n`;
  return `${head}Content-Length: ${tail}`;
}

/**
 * @param dateLine a whole `Date` header line with its line end, or ""
 * @param close announces that the connection ends with this reply
 */
export function writeReply(socket: Socket, reply: HttpReply, dateLine: string, close: boolean): void {
  const { text, chunks } = reply;
  const textBytes = Buffer.byteLength(text);
  if (chunks.length === 0) {
    // Text of one byte a character can go out without being encoded.
    socket.write(headOf(reply, textBytes, dateLine, close) + text, textBytes === text.length ? 'latin1' : 'utf8');
    return;
  }
  let contentBytes = textBytes;
  for (const chunk of chunks) contentBytes += chunk.length;
  const head = headOf(reply, contentBytes, dateLine, close);
  if (head.length + contentBytes <= JOIN_BYTES) {
    const joined = Buffer.allocUnsafe(head.length + contentBytes);
    let at = joined.write(head, 0, 'latin1');
    at += joined.write(text, at, 'utf8');
    for (const chunk of chunks) {
      joined.set(chunk, at);
      at += chunk.length;
    }
    socket.write(joined);
    return;
  }
  socket.cork();
  socket.write(head + text, textBytes === text.length ? 'latin1' : 'utf8');
  for (const chunk of chunks) if (chunk.length > 0) socket.write(chunk);
  socket.uncork();
}
