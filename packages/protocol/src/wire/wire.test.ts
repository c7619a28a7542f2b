// Whatever is written is read again; whatever is not what was written is refused with a WireFormatError.
import { expect, test } from '@jest/globals';
import { DATA_TYPES, type Tensor } from '@paceline/tensor';
import fc from 'fast-check';
import { ERROR_CODES, ServingError, type ErrorCode } from '../error.js';
import { envelopeAfter, type Envelope, type ReplyFrame } from '../infer.js';
import {
  ENTRY_VERSION,
  inputBytesOf,
  readEntry,
  readEnvelope,
  readReplyFrame,
  readServingError,
  REFERENCED_BYTES,
  WireFormatError,
  WireReader,
  WireWriter,
  writeEntryHead,
  writeEnvelope,
  writeReplyFrame,
  writeServingError,
} from './index.js';

const text = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 140 }), fc.string({ unit: 'grapheme-ascii', maxLength: 40 }));
const natural = fc.oneof(fc.nat(300), fc.maxSafeNat());
const data = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.integer({ min: REFERENCED_BYTES - 1, max: 3 * REFERENCED_BYTES }).map((length) => new Uint8Array(length).fill(length)),
);
const tensors: fc.Arbitrary<Tensor[]> = fc.array(
  fc.record({ name: text, datatype: fc.constantFrom(...DATA_TYPES), shape: fc.array(natural, { maxLength: 5 }), data }),
  { maxLength: 4 },
);
const envelopes: fc.Arbitrary<Envelope> = fc.record(
  {
    ref: fc.record({ gateway: text, number: natural }),
    model: text,
    version: text,
    clientId: text,
    rows: natural,
    priority: natural,
    timeoutUs: fc.double({ min: 0, noNaN: true }),
    shapeKey: text,
    inputs: tensors,
    outputs: fc.array(text, { maxLength: 4 }),
    attempt: natural,
    remainingUs: fc.double({ min: 0, noNaN: true }),
    traceParent: text,
  },
  {
    requiredKeys: ['ref', 'model', 'version', 'clientId', 'rows', 'priority', 'timeoutUs', 'shapeKey', 'inputs', 'outputs'],
    noNullPrototype: true,
  },
);
const errors = fc
  .record(
    {
      code: fc.constantFrom(...(Object.keys(ERROR_CODES) as ErrorCode[])),
      message: fc.oneof(text, fc.string({ unit: 'grapheme', minLength: 1000, maxLength: 3000 })),
      reason: text,
      retryAfterMs: fc.double({ noNaN: true }),
      httpStatus: fc.integer({ min: 100, max: 599 }),
    },
    { requiredKeys: ['code', 'message', 'reason'] },
  )
  .map(({ code, message, ...options }) => new ServingError(code, message, options));
const frames: fc.Arbitrary<ReplyFrame> = fc.oneof(
  fc.record({
    ok: fc.constant(true as const),
    index: natural,
    final: fc.boolean(),
    outputs: tensors,
    timings: fc.option(
      fc.record({
        queueNs: fc.double({ noNaN: true }),
        computeInputNs: natural,
        computeInferNs: natural,
        computeOutputNs: natural,
        batchRows: natural,
      }),
      { nil: undefined },
    ),
  }),
  errors.map((error) => ({ ok: false as const, final: true as const, error })),
);

function written(write: (writer: WireWriter) => void): Buffer {
  const writer = new WireWriter();
  write(writer);
  const { totalBytes } = writer;
  const whole = Buffer.concat(writer.finish());
  expect(whole.length).toBe(totalBytes);
  return whole;
}

function entryOf(all: readonly Envelope[], hold = false): Buffer {
  return written((writer) => {
    writer.fillU32(writeEntryHead(writer), all.length);
    for (const envelope of all) writeEnvelope(writer, envelope, hold ? inputBytesOf(envelope) : undefined);
  });
}

/** Text, since views are Buffers or not depending on where they come from. */
function plain(tensor: Tensor): unknown {
  return { ...tensor, data: Buffer.from(tensor.data).toString('base64') };
}

function fields(error: ServingError): unknown {
  const { code, message, reason, retryAfterMs, httpStatus } = error;
  return { code, message, reason, retryAfterMs, httpStatus };
}

test('the times of an envelope are shortened by what has passed', () => {
  const envelope = {
    ...{ ref: { gateway: 'g', number: 1 }, model: 'm', version: '1', clientId: '', rows: 1, priority: 0, shapeKey: '' },
    ...{ inputs: [], outputs: [], timeoutUs: 50, remainingUs: 200 },
  };
  const after = (passedUs: number, of: Envelope = envelope): unknown => {
    const writer = new WireWriter();
    writeEnvelope(writer, of, undefined, passedUs);
    const { timeoutUs, remainingUs } = readEnvelope(new WireReader(Buffer.concat(writer.finish())));
    expect(envelopeAfter(of, passedUs)).toMatchObject({ timeoutUs });
    expect(envelopeAfter(of, passedUs).remainingUs).toBe(remainingUs);
    return [timeoutUs, remainingUs];
  };
  expect([after(0), after(40), after(60), after(300)]).toEqual([
    [50, 200],
    [10, 160],
    [1, 140],
    [1, 0],
  ]);
  const { remainingUs: _, ...forEver } = envelope;
  expect(after(300, { ...forEver, timeoutUs: 0 })).toEqual([0, undefined]);
});

test('entries come back whole: every field, unicode, empty and large tensors', () => {
  fc.assert(
    fc.property(fc.array(envelopes, { maxLength: 5 }), (all) => {
      const back = readEntry(entryOf(all));
      expect(back.map((envelope) => ({ ...envelope, inputs: envelope.inputs.map(plain) }))).toEqual(
        all.map((envelope) => ({ ...envelope, inputs: envelope.inputs.map(plain) })),
      );
    }),
    { numRuns: 150 },
  );
});

test('tensors that stay behind are told by shape and by how many bytes they have', () => {
  fc.assert(
    fc.property(envelopes, (envelope) => {
      const inputs = envelope.inputs.map((tensor) => ({ ...tensor, data: new Uint8Array(0) }));
      const heldBytes = envelope.inputs.reduce((bytes, tensor) => bytes + tensor.data.length, 0);
      const [back] = readEntry(entryOf([envelope], true));
      expect({ ...back, inputs: back!.inputs.map(plain) }).toEqual({ ...envelope, inputs: inputs.map(plain), heldBytes });
      // What is written once more, as it was read, is the same.
      expect(readEntry(entryOf([back!]))).toEqual([back]);
    }),
    { numRuns: 50 },
  );
});

test('reply frames and errors come back whole', () => {
  fc.assert(
    fc.property(frames, (frame) => {
      const back = readReplyFrame(new WireReader(written((writer) => writeReplyFrame(writer, frame))));
      if (frame.ok && back.ok) {
        expect({ ...back, outputs: back.outputs.map(plain) }).toEqual({ ...frame, outputs: frame.outputs.map(plain) });
      } else {
        expect(!back.ok && fields(back.error)).toEqual(!frame.ok && fields(frame.error));
      }
    }),
    { numRuns: 150 },
  );
});

test('a large tensor is referenced by the writer, and viewed by the reader', () => {
  const large = new Uint8Array(REFERENCED_BYTES).fill(7);
  const writer = new WireWriter();
  writeReplyFrame(writer, {
    ok: true,
    index: 0,
    final: true,
    outputs: [{ name: 'OUT', datatype: 'UINT8', shape: [large.length], data: large }],
    timings: undefined,
  });
  const segments = writer.finish();
  expect(segments.some((segment) => segment.buffer === large.buffer)).toBe(true);
  const whole = Buffer.concat(segments);
  const frame = readReplyFrame(new WireReader(whole));
  expect(frame.ok && frame.outputs[0]!.data.buffer).toBe(whole.buffer);
});

test('a truncated entry is refused, wherever it ends', () => {
  const [envelope] = fc.sample(envelopes, { numRuns: 1, seed: 7 });
  const whole = entryOf([{ ...envelope!, inputs: [{ name: 'IN', datatype: 'FP32', shape: [1, 2], data: new Uint8Array(8) }] }]);
  for (let length = 0; length < whole.length; length++) {
    expect(() => readEntry(whole.subarray(0, length))).toThrow(WireFormatError);
  }
  expect(() => readEntry(Buffer.concat([whole, Uint8Array.of(0)]))).toThrow(/1 bytes too many \(at byte \d+\)/);
});

test('garbled bytes give a WireFormatError or other values, nothing else', () => {
  const original = fc.tuple(
    fc.array(envelopes, { minLength: 1, maxLength: 3 }),
    fc.infiniteStream(fc.nat(255)),
    fc.nat(),
    fc.integer({ min: 1, max: 8 }),
  );
  fc.assert(
    fc.property(original, ([all, noise, at, length]) => {
      const entry = entryOf(all);
      for (let i = at % entry.length; i < Math.min(entry.length, (at % entry.length) + length); i++)
        entry[i] = noise.next().value as number;
      expectOnlyFormatErrors(() => readEntry(entry));
    }),
    { numRuns: 300 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
      expectOnlyFormatErrors(() => readEntry(Buffer.concat([Uint8Array.of(ENTRY_VERSION), noise])));
      expectOnlyFormatErrors(() => readReplyFrame(new WireReader(noise)));
      expectOnlyFormatErrors(() => readServingError(new WireReader(noise)));
    }),
    { numRuns: 1000 },
  );
});

test('a refusal says which field, what was needed and where', () => {
  const error = written((writer) => writeServingError(writer, new ServingError('INTERNAL', 'broken')));
  expect(() => readServingError(new WireReader(error.subarray(0, 5)))).toThrow('error message: needs 6 bytes, but 2 are left (at byte 3)');
  expect(() => readEntry(Uint8Array.of(9, 0, 0))).toThrow('entry version: expected 1, found 9');
  // A count of four thousand million with nothing behind it: no array of that size is made.
  expect(() => new WireReader(Uint8Array.of(255, 255, 255, 255, 15)).count('tensors')).toThrow('4294967295 are announced, but 0 bytes');
  expect(() => new WireReader(new Uint8Array(12).fill(255)).varint('rows')).toThrow('rows');
});

test('what cannot be written is a bug of the caller and says so', () => {
  const writer = new WireWriter();
  expect(() => writer.varint(-1)).toThrow('expected an integer from 0');
  expect(() => writer.varint(1.5)).toThrow(RangeError);
});

test('a reserved number is filled in later, though the writer went on to another block', () => {
  const whole = written((writer) => {
    const length = writer.reserveU32();
    for (let i = 0; i < 100; i++) writer.bytes(new Uint8Array(REFERENCED_BYTES - 1).fill(i));
    writer.fillU32(length, writer.totalBytes);
  });
  const reader = new WireReader(whole);
  expect(reader.u32('length')).toBe(whole.length);
  for (let i = 0; i < 100; i++) expect(Buffer.from(reader.bytes('block')).equals(Buffer.alloc(REFERENCED_BYTES - 1, i))).toBe(true);
  reader.end('blocks');
});

function expectOnlyFormatErrors(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof WireFormatError)) throw error;
  }
}
