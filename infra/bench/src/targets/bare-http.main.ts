/**
 * What JSON over `node:http` costs without any inference: parses the same v2 body and answers a v2 answer of the same
 * size with numbers taken from the request. Arguments: model, output name, elements of the output.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface ParsedBody {
  readonly inputs: readonly { readonly data: readonly number[] }[];
}

const [model = '', outputName = '', elementsText = '1'] = process.argv.slice(2);
const elements = Number(elementsText);

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { inputs } = JSON.parse(Buffer.concat(chunks).toString()) as ParsedBody;
    const values = inputs[0]?.data ?? [];
    const data = Array.from({ length: elements }, (_, i) => values[i % values.length]);
    const answer = JSON.stringify({
      model_name: model,
      model_version: '1',
      outputs: [{ name: outputName, datatype: 'FP32', shape: [1, elements], data }],
    });
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
    response.end(answer);
  });
});
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('disconnect', () => process.exit(0));
