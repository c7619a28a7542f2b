export { ConfigSyntaxError, parseConfigText, type ConfigText } from './config-text/parse.js';
export type { TextFault } from './config-text/locate.js';
export type { Place } from './config-text/tokens.js';
export { describeOnnxFile } from './onnx/describe.js';
export {
  LocalModelRepository,
  type ModelRepositoryOptions,
  type ObservedModel,
  type RepositoryListing,
  type RepositoryModel,
} from './repository.js';
export { safeExistingFile, safeJoin, safeSegment } from './safe-path.js';
export type { IgnoredEntry } from './scan/listing.js';
