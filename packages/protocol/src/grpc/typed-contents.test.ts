import { describe, expect, it } from '@jest/globals';
import { create, toBinary } from '@bufbuild/protobuf';
import { DATA_TYPES, type DataType } from '@paceline/tensor';
import { InferTensorContentsSchema } from '../gen/grpc_service_pb.js';
import { contentsToBytes, countContents } from './typed-contents.js';

const refuse = (index: number, value: number): never => {
  throw new Error(`element ${index} is ${value}`);
};

describe('typed contents', () => {
  it('become the canonical bytes of each datatype', () => {
    const message = create(InferTensorContentsSchema, {
      boolContents: [true, false],
      intContents: [-1, 127],
      int64Contents: [-(2n ** 63n), 9007199254740993n],
      uintContents: [0, 255],
      uint64Contents: [2n ** 64n - 1n],
      fp32Contents: [1.5, Number.NaN, Number.NEGATIVE_INFINITY],
      fp64Contents: [Math.PI],
      bytesContents: [Buffer.from('a\0b'), new Uint8Array(0)],
    });
    const wire = toBinary(InferTensorContentsSchema, message);
    const ranges = [{ start: 0, end: wire.length }];
    const counts = countContents(wire, ranges);
    const hex = (datatype: DataType): string => Buffer.from(contentsToBytes(wire, ranges, counts, datatype, refuse)).toString('hex');
    expect(Object.fromEntries(DATA_TYPES.map((datatype) => [datatype, hex(datatype)]))).toEqual({
      BOOL: '0100',
      INT8: 'ff7f',
      INT16: 'ffff7f00',
      INT32: 'ffffffff7f000000',
      INT64: '00000000000000800100000000002000',
      UINT8: '00ff',
      UINT16: '0000ff00',
      UINT32: '00000000ff000000',
      UINT64: 'ffffffffffffffff',
      FP32: '0000c03f0000c07f000080ff',
      FP64: Buffer.from(new Float64Array([Math.PI]).buffer).toString('hex'),
      BYTES: '0300000061006200000000',
      FP16: '',
      BF16: '',
    });
  });

  it('refuse a value that the datatype cannot hold', () => {
    const wire = toBinary(InferTensorContentsSchema, create(InferTensorContentsSchema, { intContents: [5, 128], uintContents: [70000] }));
    const ranges = [{ start: 0, end: wire.length }];
    const counts = countContents(wire, ranges);
    expect(() => contentsToBytes(wire, ranges, counts, 'INT8', refuse)).toThrow('element 1 is 128');
    expect(() => contentsToBytes(wire, ranges, counts, 'UINT16', refuse)).toThrow('element 0 is 70000');
  });
});
