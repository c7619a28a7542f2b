import { describe, expect, it } from '@jest/globals';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { DATA_TYPES, type Tensor } from '@paceline/tensor';
import fc from 'fast-check';
import {
  InferParameterSchema,
  ModelInferRequestSchema,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
} from '../gen/grpc_service_pb.js';
import type { ParameterValue } from '../infer.js';
import { ServingError } from '../error.js';
import { decodeModelInferRequest, WIRE_LIMITS } from './infer-request.js';
import { encodeModelInferResponse, encodeModelStreamInferResponse } from './infer-response.js';
import { contentsToBytes, countContents } from './typed-contents.js';

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const bytes = fc.uint8Array({ maxLength: 40 });
/** Numbers that protobuf's int64 keeps and a number holds exactly. */
const dimension = fc.oneof(fc.integer({ min: -1, max: 300 }), fc.maxSafeInteger());

const choice = fc.oneof(
  fc.boolean().map((value) => ({ case: 'boolParam' as const, value })),
  int64.map((value) => ({ case: 'int64Param' as const, value })),
  text.map((value) => ({ case: 'stringParam' as const, value })),
  fc.double({ noNaN: true }).map((value) => ({ case: 'doubleParam' as const, value })),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => ({ case: 'uint64Param' as const, value })),
  fc.constant({ case: undefined }),
);
const parameters = fc
  .dictionary(text, choice, { maxKeys: 4 })
  .map((all) =>
    Object.fromEntries(Object.entries(all).map(([key, parameterChoice]) => [key, create(InferParameterSchema, { parameterChoice })])),
  );
const contents = fc.record({
  boolContents: fc.array(fc.boolean(), { maxLength: 5 }),
  intContents: fc.array(fc.integer(), { maxLength: 5 }),
  int64Contents: fc.array(int64, { maxLength: 5 }),
  uintContents: fc.array(fc.nat(), { maxLength: 5 }),
  uint64Contents: fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 5 }),
  fp32Contents: fc.array(fc.float(), { maxLength: 5 }),
  fp64Contents: fc.array(fc.double(), { maxLength: 5 }),
  bytesContents: fc.array(bytes, { maxLength: 5 }),
});
const input = fc.record({
  name: text,
  datatype: text,
  shape: fc.array(dimension.map(BigInt), { maxLength: 5 }),
  parameters,
  contents: fc.option(contents, { nil: undefined }),
});
const request = fc.record({
  modelName: text,
  modelVersion: text,
  id: text,
  parameters,
  inputs: fc.array(input, { maxLength: 4 }),
  outputs: fc.array(fc.record({ name: text, parameters }), { maxLength: 4 }),
  rawInputContents: fc.array(bytes, { maxLength: 4 }),
});

/** Fields that no version of the message has. */
const unknownFields = Buffer.from([
  0xf8, 0x07, 0x96, 0x01, 0xfa, 0x07, 0x02, 9, 9, 0xfd, 0x07, 1, 2, 3, 4, 0xf9, 0x07, 1, 2, 3, 4, 5, 6, 7, 8, 0xfb, 0x07, 0x08, 0x01, 0xfc,
  0x07,
]);

const plain = (all: Record<string, { parameterChoice: { value?: unknown } }>): Map<string, unknown> =>
  new Map(Object.entries(all).map(([key, parameter]) => [key, parameter.parameterChoice.value]));
const sorted = (map: ReadonlyMap<string, unknown>): [string, unknown][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
const refuse = (index: number, value: number): never => {
  throw new Error(`element ${index} is ${value}`);
};

describe('decoding ModelInferRequest', () => {
  it('reads what the generated code writes, unknown fields included', () => {
    fc.assert(
      fc.property(request, fc.boolean(), (init, withUnknown) => {
        const message = create(ModelInferRequestSchema, init);
        const encoded = toBinary(ModelInferRequestSchema, message);
        const wire = withUnknown ? Buffer.concat([unknownFields, encoded, unknownFields]) : Buffer.from(encoded);
        const decoded = decodeModelInferRequest(wire);
        expect(decoded.modelName).toBe(message.modelName);
        expect(decoded.modelVersion).toBe(message.modelVersion);
        expect(decoded.id).toBe(message.id);
        expect(sorted(decoded.parameters)).toEqual(sorted(plain(message.parameters)));
        expect(
          decoded.inputs.map((i) => ({ name: i.name, datatype: i.datatype, shape: i.shape.map(BigInt), parameters: sorted(i.parameters) })),
        ).toEqual(
          message.inputs.map((i) => ({ name: i.name, datatype: i.datatype, shape: i.shape, parameters: sorted(plain(i.parameters)) })),
        );
        expect(decoded.outputs.map((o) => ({ name: o.name, parameters: sorted(o.parameters) }))).toEqual(
          message.outputs.map((o) => ({ name: o.name, parameters: sorted(plain(o.parameters)) })),
        );
        expect(decoded.rawInputContents.map((raw) => [...raw])).toEqual(message.rawInputContents.map((raw) => [...raw]));
        decoded.inputs.forEach((decodedInput, i) => {
          const original = message.inputs[i]!.contents;
          expect(decodedInput.contents === undefined).toBe(original === undefined);
          if (!original) return;
          expect(countContents(wire, decodedInput.contents!).slice(1)).toEqual(
            [
              original.boolContents,
              original.intContents,
              original.int64Contents,
              original.uintContents,
              original.uint64Contents,
              original.fp32Contents,
              original.fp64Contents,
              original.bytesContents,
            ].map((c) => c.length),
          );
        });
      }),
    );
  });

  it('gives raw contents as views of the message', () => {
    const wire = Buffer.from(
      toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, { rawInputContents: [new Uint8Array([1, 2, 3])] })),
    );
    const [raw] = decodeModelInferRequest(wire).rawInputContents;
    expect(raw!.buffer).toBe(wire.buffer);
  });

  it('refuses or reads any bytes, and never fails otherwise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), request, fc.nat(), (noise, init, at) => {
        const valid = Buffer.from(toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, init)));
        const cut = valid.subarray(0, valid.length === 0 ? 0 : at % valid.length);
        for (const wire of [Buffer.from(noise), cut, Buffer.concat([cut, noise])]) {
          try {
            for (const { contents: ranges } of decodeModelInferRequest(wire).inputs) if (ranges) countContents(wire, ranges);
          } catch (error) {
            expect(error).toBeInstanceOf(ServingError);
            expect((error as ServingError).code).toBe('INVALID_ARGUMENT');
          }
        }
      }),
    );
  });

  it('agrees with the generated code on which mutated messages are valid', () => {
    fc.assert(
      fc.property(request, fc.nat(), fc.nat(255), (init, at, byte) => {
        const wire = Buffer.from(toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, init)));
        if (wire.length === 0) return;
        wire[at % wire.length] = byte;
        let generated: ReturnType<typeof fromBinary<typeof ModelInferRequestSchema>> | undefined;
        try {
          generated = fromBinary(ModelInferRequestSchema, wire);
        } catch {
          return; // the generated code is stricter about contents, which are read later
        }
        let decoded: ReturnType<typeof decodeModelInferRequest> | undefined;
        try {
          decoded = decodeModelInferRequest(wire);
        } catch {
          return; // and laxer about some malformed tags
        }
        expect(decoded.modelName).toBe(generated.modelName);
        expect(decoded.rawInputContents.length).toBe(generated.rawInputContents.length);
        expect(decoded.inputs.map((i) => i.name)).toEqual(generated.inputs.map((i) => i.name));
      }),
    );
  });

  it('reads numbers that are not packed and joins contents sent in pieces', () => {
    const piece = (values: number[]): Buffer => {
      const inner = Buffer.concat(values.map((v) => Buffer.from([0x10, v])));
      return Buffer.concat([Buffer.from([0x2a, inner.length]), inner]);
    };
    const inner = Buffer.concat([Buffer.from([0x18, 2, 0x18, 1]), piece([1, 2]), piece([3])]);
    const wire = Buffer.concat([Buffer.from([0x2a, inner.length]), inner]);
    const [decoded] = decodeModelInferRequest(wire).inputs;
    expect(decoded!.shape).toEqual([2, 1]);
    const counts = countContents(wire, decoded!.contents!);
    expect([...contentsToBytes(wire, decoded!.contents!, counts, 'INT16', refuse)]).toEqual([1, 0, 2, 0, 3, 0]);
  });

  it('refuses a message with more inputs than any client sends', () => {
    const wire = Buffer.alloc(2 * (WIRE_LIMITS.tensors + 1));
    for (let i = 0; i < wire.length; i += 2) wire[i] = 0x2a;
    expect(() => decodeModelInferRequest(wire)).toThrow(`more than ${WIRE_LIMITS.tensors} inputs`);
  });
});

describe('encoding ModelInferResponse', () => {
  const value: fc.Arbitrary<ParameterValue> = fc.oneof(
    fc.boolean(),
    text,
    fc.double({ noNaN: true }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  );
  const tensor: fc.Arbitrary<Tensor> = fc.record({
    name: fc.oneof(text, fc.string({ minLength: 60, maxLength: 200 })),
    datatype: fc.constantFrom(...DATA_TYPES),
    shape: fc.array(fc.oneof(fc.nat(300), fc.maxSafeNat()), { maxLength: 5 }),
    data: fc.uint8Array({ maxLength: 300 }),
  });
  const response = fc.record({
    modelName: text,
    modelVersion: text,
    id: text,
    parameters: fc.dictionary(text, value, { maxKeys: 4, noNullPrototype: true }),
    outputs: fc.array(tensor, { maxLength: 4 }),
  });

  it('writes what the generated code reads, byte for byte as it would write it', () => {
    fc.assert(
      fc.property(response, text, (init, error) => {
        const encoded = encodeModelInferResponse(init);
        const decoded = fromBinary(ModelInferResponseSchema, encoded);
        expect(decoded.$unknown).toBeUndefined();
        expect([decoded.modelName, decoded.modelVersion, decoded.id]).toEqual([init.modelName, init.modelVersion, init.id]);
        expect(sorted(plain(decoded.parameters))).toEqual(sorted(new Map(Object.entries(init.parameters))));
        expect(decoded.outputs.map((o) => ({ name: o.name, datatype: o.datatype, shape: o.shape }))).toEqual(
          init.outputs.map((o) => ({ name: o.name, datatype: o.datatype, shape: o.shape.map(BigInt) })),
        );
        expect(decoded.rawOutputContents.map((raw) => [...raw])).toEqual(init.outputs.map((o) => [...o.data]));
        expect(encoded.length).toBe(toBinary(ModelInferResponseSchema, decoded).length);
        const streamed = fromBinary(ModelStreamInferResponseSchema, encodeModelStreamInferResponse(error, init));
        expect(streamed.errorMessage).toBe(error);
        expect(streamed.inferResponse).toEqual(decoded);
      }),
    );
  });
});

describe('a recorded exchange', () => {
  const row = Array.from({ length: 16 }, (_, i) => i);
  const int32 = (values: number[]): Uint8Array => new Uint8Array(Int32Array.from(values).buffer);

  it('is read as it was meant', () => {
    const wire = Buffer.from(
      'CgdhZGRfc3ViGgExKhMKBklOUFVUMBIFSU5UMzIaAgEQKhMKBklOUFVUMRIFSU5UMzIaAgEQOkAAAAAAAQAAAAIAAAADAAAABAAAAAUAAAAGAAAABwAAAAgAAAAJAAAACgAAAAsAAAAMAAAADQAAAA4AAAAPAAAAOkABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAA',
      'base64',
    );
    const decoded = decodeModelInferRequest(wire);
    expect([decoded.modelName, decoded.modelVersion, decoded.id]).toEqual(['add_sub', '', '1']);
    expect(decoded.inputs.map((i) => [i.name, i.datatype, i.shape])).toEqual([
      ['INPUT0', 'INT32', [1, 16]],
      ['INPUT1', 'INT32', [1, 16]],
    ]);
    expect(decoded.rawInputContents.map((raw) => [...raw])).toEqual([[...int32(row)], [...int32(row.map(() => 1))]]);
  });

  it('is answered byte for byte as Triton 2.51 answered it', () => {
    const tensor = (name: string, values: number[]): Tensor => ({ name, datatype: 'INT32', shape: [1, 16], data: int32(values) });
    const encoded = encodeModelStreamInferResponse('', {
      modelName: 'add_sub',
      modelVersion: '1',
      id: '1',
      parameters: { triton_final_response: true },
      outputs: [
        tensor(
          'OUTPUT0',
          row.map((v) => v + 1),
        ),
        tensor(
          'OUTPUT1',
          row.map((v) => v - 1),
        ),
      ],
    });
    expect(encoded.toString('base64')).toBe(
      'EtwBCgdhZGRfc3ViEgExGgExIhsKFXRyaXRvbl9maW5hbF9yZXNwb25zZRICCAEqFAoHT1VUUFVUMBIFSU5UMzIaAgEQKhQKB09VVFBVVDESBUlOVDMyGgIBEDJAAQAAAAIAAAADAAAABAAAAAUAAAAGAAAABwAAAAgAAAAJAAAACgAAAAsAAAAMAAAADQAAAA4AAAAPAAAAEAAAADJA/////wAAAAABAAAAAgAAAAMAAAAEAAAABQAAAAYAAAAHAAAACAAAAAkAAAAKAAAACwAAAAwAAAANAAAADgAAAA==',
    );
  });
});
