/** Sends one recorded HTTP request over a socket of its own, byte for byte, and reads the answer strictly. */
import { connect } from 'node:net';
import { gunzipSync, inflateSync } from 'node:zlib';
import { isUtf8 } from 'node:buffer';
import { parseJsonExact } from '@paceline/tensor';
import { AnswerReader, type HttpAnswer as WireAnswer } from '../http-answers.js';
import type { HttpAnswer, HttpCall, Json } from './recording.js';

const PATIENCE_MS = 30_000;

function requestBytes({ method, path, headers = {}, body, bodyBase64 }: HttpCall): Buffer {
  const bytes = bodyBase64 === undefined ? Buffer.from(body ?? '') : Buffer.from(bodyBase64, 'base64');
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)];
  const announces = names.has('content-length') || names.has('transfer-encoding');
  if (!announces && (body !== undefined || bodyBase64 !== undefined)) lines.push(`Content-Length: ${bytes.length}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes]);
}

/** @returns undefined when the connection ended before any byte of an answer */
function exchangeBytes(port: number, request: Buffer, bodyless: boolean): Promise<WireAnswer | undefined> {
  return new Promise((resolve, reject) => {
    const reader = new AnswerReader(bodyless);
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)));
    socket.on('connect', () => socket.write(request));
    socket.on('error', reject);
    /** What the reader throws ends the connection, and so the exchange. */
    const read = (answers: () => readonly WireAnswer[]): WireAnswer | undefined => {
      try {
        return answers()[0];
      } catch (error) {
        socket.destroy(error as Error);
        return undefined;
      }
    };
    socket.on('data', (chunk) => {
      const answer = read(() => reader.push(chunk));
      if (answer === undefined) return;
      resolve(answer);
      socket.destroy();
    });
    socket.on('end', () => {
      const last = read(() => reader.end());
      if (!socket.errored) resolve(last);
    });
  });
}

function decoded(body: Buffer, encoding: string | undefined): Buffer {
  if (encoding === 'gzip') return gunzipSync(body);
  return encoding === 'deflate' ? inflateSync(body) : body;
}

function bodyFields(body: Buffer, jsonBytes: number | undefined): Partial<HttpAnswer> {
  if (jsonBytes !== undefined) {
    return {
      json: parseJsonExact(body.toString('utf8', 0, jsonBytes)) as Json,
      binaryBase64: body.toString('base64', jsonBytes),
    };
  }
  if (!isUtf8(body)) return { base64: body.toString('base64') };
  const text = body.toString('utf8');
  if (text === '') return { text };
  try {
    return { json: parseJsonExact(text) as Json };
  } catch {
    return { text };
  }
}

/** @throws Error for bytes that are no answer, or none within 30 s */
export async function exchangeHttp(address: string, call: HttpCall): Promise<HttpAnswer> {
  const port = Number(address.split(':').at(-1));
  const wire = await exchangeBytes(port, requestBytes(call), call.method === 'HEAD');
  if (wire === undefined) return { status: null };
  const { status, headers } = wire;
  const contentType = headers.get('content-type')?.split(';')[0]?.trim();
  const contentEncoding = headers.get('content-encoding');
  const jsonLength = headers.get('inference-header-content-length');
  const body = decoded(wire.body, contentEncoding);
  return {
    status,
    ...(contentType !== undefined && status < 400 ? { contentType } : {}),
    ...(contentEncoding !== undefined ? { contentEncoding } : {}),
    ...bodyFields(body, jsonLength === undefined ? undefined : Number(jsonLength)),
  };
}
