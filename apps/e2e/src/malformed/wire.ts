/** The protobuf and gRPC wire formats, written without any check: what no generated code would let through. */

export const WIRE = { varint: 0, fixed64: 1, bytes: 2, groupStart: 3, groupEnd: 4, fixed32: 5 } as const;

export function varint(value: bigint | number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}

export function tag(field: number, wireType: number): Buffer {
  return varint((BigInt(field) << 3n) | BigInt(wireType));
}

/** A length-delimited field. @param length what is announced; left out = the truth */
export function field(number: number, content: Buffer | string, length?: bigint | number): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([tag(number, WIRE.bytes), varint(length ?? bytes.length), bytes]);
}

/** One gRPC message. @param length what the prefix announces; left out = the truth */
export function frame(message: Buffer, flag = 0, length: number = message.length): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

export interface WireTensor {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly (bigint | number)[];
  /** More fields of the InferInputTensor, e.g. contents. */
  readonly extra?: Buffer;
}

export function inputField({ name, datatype, shape, extra = Buffer.alloc(0) }: WireTensor): Buffer {
  const dims = Buffer.concat(shape.map((dim) => varint(typeof dim === 'bigint' ? dim : BigInt(Math.trunc(dim)))));
  return field(5, Buffer.concat([field(1, name), field(2, datatype), field(3, dims), extra]));
}

/** A whole ModelInferRequest. */
export function inferMessage(
  model: string,
  tensors: readonly WireTensor[],
  raw: readonly Buffer[],
  extra: Buffer = Buffer.alloc(0),
): Buffer {
  return Buffer.concat([field(1, model), ...tensors.map(inputField), extra, ...raw.map((bytes) => field(7, bytes))]);
}
