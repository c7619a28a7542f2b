/** The one error of this package: bytes or JSON that do not make the tensor they claim to be. Shells map it to INVALID_ARGUMENT. */
export class TensorFormatError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TensorFormatError';
  }
}

/**
 * A 64-bit integer was read from JSON as a double and may have lost digits. The caller parses the text again with
 * {@link parseJsonExact} and converts again; nothing else is wrong.
 */
export class InexactIntegerError extends Error {
  constructor() {
    super('an integer of 2^53 or more was parsed as a double');
    this.name = 'InexactIntegerError';
  }
}
