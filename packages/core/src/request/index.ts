export { compileSignature, type Signature, type ValidatedRequest } from './signature.js';
export { requestPrefix } from './texts.js';
export { classSupports, classify, type ClassDataType } from './classification.js';
export { readParameters, type RequestParameters } from './parameters.js';
