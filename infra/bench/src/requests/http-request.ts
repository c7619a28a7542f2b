/** Whole HTTP/1.1 requests as bytes, made before a run so that sending one costs the generator a single write. */
import type { BenchModel } from '../models/catalog.js';
import { inputBatch, inputRow, rawBytes } from './inputs.js';

export type HttpForm = 'json' | 'binary';

export interface HttpBody {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

function jsonBody(model: BenchModel, index: number): HttpBody {
  const data = Array.from(inputRow(model, index));
  const text = JSON.stringify({ inputs: [{ name: model.inputName, shape: [1, ...model.inputShape], datatype: 'FP32', data }] });
  return { bytes: Buffer.from(text), headers: { 'content-type': 'application/json' } };
}

function binaryBody(model: BenchModel, index: number): HttpBody {
  const raw = rawBytes(inputBatch(model, index, 1));
  const head = Buffer.from(
    JSON.stringify({
      inputs: [{ name: model.inputName, shape: [1, ...model.inputShape], datatype: 'FP32', parameters: { binary_data_size: raw.length } }],
      outputs: [{ name: model.outputName, parameters: { binary_data: true } }],
    }),
  );
  return {
    bytes: Buffer.concat([head, raw]),
    headers: { 'content-type': 'application/octet-stream', 'inference-header-content-length': String(head.length) },
  };
}

/** The body of pool row `index` in the v2 protocol. */
export function httpBody(model: BenchModel, index: number, form: HttpForm): HttpBody {
  return form === 'json' ? jsonBody(model, index) : binaryBody(model, index);
}

export function inferPath(modelName: string): string {
  return `/v2/models/${modelName}/infer`;
}

/** One request per row of the pool, ready to be written to a socket. */
export function httpRequests(model: BenchModel, form: HttpForm): Buffer[] {
  return Array.from({ length: model.poolSize }, (_, index) => {
    const { bytes, headers } = httpBody(model, index, form);
    const lines = Object.entries({ host: 'localhost', ...headers, 'content-length': String(bytes.length) });
    const head = `POST ${inferPath(model.name)} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
    return Buffer.concat([Buffer.from(head), bytes]);
  });
}
