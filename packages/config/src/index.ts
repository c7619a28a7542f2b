export { isLoopback } from './cluster-faults.js';
export type * from './cluster-options.js';
export { parseClusterOptions } from './parse-cluster-options.js';
export { parseServeOptions } from './parse-serve-options.js';
export type * from './serve-options.js';
export * from './keys/index.js';
