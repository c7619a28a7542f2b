export { parseServeOptions } from './parse-serve-options.js';
export type * from './serve-options.js';
export * from './keys/index.js';
