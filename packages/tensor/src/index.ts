export { DATA_TYPES, elementSize, isDataType, type DataType } from './datatype.js';
export type { Tensor } from './tensor.js';
export { InexactIntegerError, TensorFormatError } from './errors.js';
export { byteSize, elementCount, formatShape } from './shape.js';
export { decodeBytes, encodeBytes, inspectBytes, type BytesLayout } from './bytes.js';
export { fromBFloat16Bits, fromFloat16Bits, toBFloat16Bits, toFloat16Bits } from './float16.js';
export { parseJsonExact } from './json-parse.js';
export { decodeJsonData, MAX_DATA_DEPTH } from './json-decode.js';
export { encodeJsonData } from './json-encode.js';
