export { KEY_ID, keyFileLine, KeyFileError, MODEL_GLOB, parseKeyFile, type KeyEntry, type KeyQuota } from './key-file.js';
export { isKeyScope, KEY_SCOPES, type KeyScope } from './scopes.js';
export { generateApiKey, hashApiKey } from './secret.js';
