export { AccessPolicy, type AccessOptions } from './access-policy.js';
export type { Grant } from './grant.js';
export { KeyFile } from './key-file.js';
export { TlsFiles, type TlsSource } from './tls-files.js';
