/**
 * Why Paceline answers otherwise than the recorded Triton 2.51, by the keys that the accepted differences name. A difference
 * without a reason here is a failure.
 */
export const REASONS = {
  'client-fault': "a client's fault is a 4xx, not 500 or INTERNAL; the text begins as Triton's and goes on with what was found",
  'json-parser': "a client's fault is a 4xx; what is wrong with the JSON is said in the words of another parser, with the position",
  extensions: 'an extension is named only when it is served',
  'percent-encoding': 'percent-encoded names in a path are decoded',
  'unknown-method': 'a method that HTTP does not know is a malformed request; gRPC names the method it does not know',
  'half-precision': 'FP16 and BF16 travel in JSON',
  'integer-range': 'an integer that its datatype cannot hold is refused, not wrapped around',
  'whole-floats': '1.0 is the integer 1: JSON has one kind of number',
  infinities: 'NaN and infinities are written as strings, so that the body is JSON',
  'element-named': 'the text names the element and the input',
  'zero-bytes': "the runtime's strings end at a zero byte: refused by name instead of cut off",
  'utf-8': 'JSON that is not UTF-8 is refused',
  'binary-framing':
    'Inference-Header-Content-Length is a decimal number or refused, and the JSON ends where it says, without octets after it',
  'empty-binary': 'a tensor of no elements is data: present without octets, and framed like every other binary output',
  'raw-deflate': 'Content-Encoding deflate also without the zlib wrapper, which many clients send',
  'unsupported-coding': '415 says that another coding would do; 501 says nothing of the kind',
  'corrupt-coding': 'a compressed body is decompressed whole and must be sound, or is refused as what it is',
  'named-value': 'the text names what was expected and what was found',
  'malformed-version': 'a version is digits only',
  'extra-raw-contents': 'as many raw contents as inputs, or it is not known which belongs to which',
  'unsigned-classification': 'a count may be a uint64_param',
  survives: 'the recorded server ended without an answer',
  'strict-body': 'a body that is no JSON object is refused, not ignored',
  'override-ends': 'a load without a configuration takes that of the repository; the override of an earlier load ends',
  'load-report': 'a failed load says every fault, where it stands and what would be right; files are named within the repository',
  'index-says-why': 'the repository index lists each model that was asked for, with the reason why it is not there',
  'unload-reason': 'a model that failed to load and was then unloaded is unloaded',
  'permission-denied': 'a missing right is PERMISSION_DENIED, as HTTP says 403; UNAVAILABLE makes clients try again',
} as const;

export function isReason(key: string): key is keyof typeof REASONS {
  return Object.hasOwn(REASONS, key);
}
