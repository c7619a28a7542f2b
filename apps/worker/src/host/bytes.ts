/** BYTES tensors between their canonical form and the JavaScript strings that ONNX Runtime's string tensors are made of. */
import { HostError } from './host-error.js';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * @param data elements, each a 4-byte length and that many bytes
 * @throws HostError naming the input and the element: bad framing, a wrong count, text that is not UTF-8, or a zero
 * byte, at which the runtime would cut the element off without a word
 */
export function decodeStrings(name: string, data: Buffer, count: number): string[] {
  const strings = new Array<string>(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (at + 4 > data.byteLength) throw badBytes(`expected ${count} elements for input '${name}', got ${i}`);
    const bytes = data.readUInt32LE(at);
    at += 4;
    if (at + bytes > data.byteLength) {
      throw badBytes(`element ${i} of input '${name}' is ${bytes} bytes long, but only ${data.byteLength - at} bytes follow`);
    }
    const element = data.subarray(at, at + bytes);
    if (element.includes(0)) throw badBytes(`element ${i} of input '${name}' contains a zero byte, which the model's strings cannot hold`);
    try {
      strings[i] = utf8.decode(element);
    } catch {
      throw badBytes(`element ${i} of input '${name}' is not valid UTF-8, which the model's strings must be`);
    }
    at += bytes;
  }
  if (at !== data.byteLength)
    throw badBytes(`expected ${count} elements for input '${name}', got more: ${data.byteLength - at} bytes are left over`);
  return strings;
}

export function encodeStrings(strings: readonly string[]): Buffer {
  let total = 0;
  for (const s of strings) total += 4 + Buffer.byteLength(s);
  const data = Buffer.allocUnsafe(total);
  let at = 0;
  for (const s of strings) {
    const bytes = data.write(s, at + 4);
    data.writeUInt32LE(bytes, at);
    at += 4 + bytes;
  }
  return data;
}

function badBytes(message: string): HostError {
  return new HostError('INVALID_ARGUMENT', 'invalid_bytes', message);
}
