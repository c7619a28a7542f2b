export { WireFormatError } from './format-error.js';
export { REFERENCED_BYTES, WireWriter, type ReservedU32 } from './writer.js';
export { WireReader } from './reader.js';
export { readTensors, writeTensors } from './tensors.js';
export { readServingError, writeServingError } from './serving-error.js';
export { inputBytesOf, readEnvelope, readRequestRef, writeEnvelope, writeRequestRef } from './envelope.js';
export { readReplyFrame, writeReplyFrame } from './reply-frame.js';
export { ENTRY_VERSION, readEntry, writeEntryHead } from './entry.js';
