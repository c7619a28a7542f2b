/** Tensors on the wire: their count, then name, data type, dimensions and bytes of each. */
import { DATA_TYPES, type DataType, type Tensor } from '@paceline/tensor';
import type { WireReader } from './reader.js';
import type { WireWriter } from './writer.js';

const NO_BYTES = new Uint8Array(0);
const CODES = new Map<DataType, number>(DATA_TYPES.map((datatype, code) => [datatype, code]));

/** @param held write the descriptions alone: the bytes stay where they are, and whoever reads gets empty `data` */
export function writeTensors(writer: WireWriter, tensors: readonly Tensor[], held = false): void {
  writer.varint(tensors.length);
  for (const { name, datatype, shape, data } of tensors) {
    writer.string(name);
    writer.u8(CODES.get(datatype)!);
    writer.varint(shape.length);
    for (const dimension of shape) writer.varint(dimension);
    writer.bytes(held ? NO_BYTES : data);
  }
}

/** The `data` of the tensors are views into what is read. Whether their length suits the shape is not looked at. */
export function readTensors(reader: WireReader): Tensor[] {
  const count = reader.count('tensors');
  const tensors: Tensor[] = [];
  for (let i = 0; i < count; i++) {
    const name = reader.string('tensor name');
    const code = reader.u8('tensor data type');
    const datatype = DATA_TYPES[code] ?? reader.fail(`tensor data type: ${code} is none`);
    const rank = reader.count('tensor dimensions');
    const shape: number[] = [];
    for (let axis = 0; axis < rank; axis++) shape.push(reader.varint('tensor dimension'));
    tensors.push({ name, datatype, shape, data: reader.bytes('tensor data') });
  }
  return tensors;
}
