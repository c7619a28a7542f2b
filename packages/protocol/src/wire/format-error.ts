/** The one error of reading bytes that are not what a writer of this package wrote. */
export class WireFormatError extends Error {
  /** Offset in bytes, from the head of what was read, at which the fault shows. */
  readonly offset: number;

  /** @param what the field and the fault, e.g. `tensor shape: 9 dimensions, but 3 bytes are left` */
  constructor(what: string, offset: number) {
    super(`${what} (at byte ${offset})`);
    this.name = 'WireFormatError';
    this.offset = offset;
  }
}
