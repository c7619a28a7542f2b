export { DATA_TYPES, elementSize, isDataType, type DataType } from './datatype.js';
export type { Tensor } from './tensor.js';
