/**
 * Compares answers of the server with the in-process result of the same model and input, many requests at once so that
 * they share batches. A benchmark of wrong answers is worthless: any difference ends the run.
 */
import { promisify } from 'node:util';
import { Client, credentials } from '@grpc/grpc-js';
import { fromBinary } from '@bufbuild/protobuf';
import { ModelInferResponseSchema } from '@paceline/protocol/grpc';
import type { BenchModel } from '../models/catalog.js';
import { inferMessage, MODEL_INFER_PATH } from '../requests/grpc-request.js';
import { httpBody, inferPath, type HttpForm } from '../requests/http-request.js';
import type { Limit } from '../targets/limit.js';
import type { Target } from '../targets/target.js';

const CHECKED = 32;

interface JsonAnswer {
  readonly outputs: readonly { readonly name: string; readonly data?: readonly number[] }[];
}

function floatsOf(bytes: Uint8Array): number[] {
  return Array.from(new Float32Array(Uint8Array.from(bytes).buffer));
}

async function httpAnswer(target: Target, model: BenchModel, index: number, form: HttpForm): Promise<readonly number[]> {
  const { bytes, headers } = httpBody(model, index, form);
  const response = await fetch(`http://127.0.0.1:${target.httpPort}${inferPath(model.name)}`, {
    method: 'POST',
    headers,
    body: new Uint8Array(bytes),
  });
  const body = Buffer.from(await response.arrayBuffer());
  if (!response.ok) throw new Error(`${model.name} answered HTTP ${response.status}: ${body.toString('utf8', 0, 500)}`);
  const headLength = response.headers.get('inference-header-content-length');
  if (headLength !== null) return floatsOf(body.subarray(Number(headLength)));
  const { outputs } = JSON.parse(body.toString()) as JsonAnswer;
  return outputs.find((output) => output.name === model.outputName)?.data ?? [];
}

async function grpcAnswers(target: Target, model: BenchModel, indexes: readonly number[]): Promise<readonly number[][]> {
  const client = new Client(`127.0.0.1:${target.grpcPort}`, credentials.createInsecure());
  const asIs = (bytes: Uint8Array): Buffer => Buffer.from(bytes);
  const infer = promisify((message: Uint8Array, done: (error: Error | null, bytes?: Buffer) => void) => {
    client.makeUnaryRequest(MODEL_INFER_PATH, asIs, (bytes: Buffer) => bytes, message, done);
  });
  try {
    const answers = await Promise.all(indexes.map((index) => infer(inferMessage(model, index))));
    return answers.map((bytes) =>
      floatsOf(fromBinary(ModelInferResponseSchema, bytes ?? Buffer.alloc(0)).rawOutputContents[0] ?? Buffer.alloc(0)),
    );
  } finally {
    client.close();
  }
}

/** Throws unless `found` has the length of `expected` and lies within `tolerance` of it everywhere. */
export function assertClose(found: readonly number[], expected: readonly number[], tolerance: number, what: string): void {
  if (found.length !== expected.length) throw new Error(`${what}: expected ${expected.length} numbers, found ${found.length}`);
  expected.forEach((value, i) => {
    const difference = Math.abs((found[i] ?? Number.NaN) - value);
    if (!(difference <= tolerance)) throw new Error(`${what}, element ${i}: expected ${value}, found ${found[i]}`);
  });
}

/** @throws Error naming the first answer that differs. */
export async function checkAnswers(target: Target, model: BenchModel, form: HttpForm | 'grpc', limit: Limit): Promise<void> {
  const indexes = Array.from({ length: Math.min(CHECKED, model.poolSize) }, (_, i) => i);
  const found =
    form === 'grpc'
      ? await grpcAnswers(target, model, indexes)
      : await Promise.all(indexes.map((index) => httpAnswer(target, model, index, form)));
  for (const index of indexes) {
    assertClose(found[index] ?? [], await limit.answer(index), model.tolerance, `${model.name} ${form} input ${index}`);
  }
}
