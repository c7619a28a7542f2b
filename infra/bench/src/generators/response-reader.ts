/**
 * Finds the ends of HTTP/1.1 answers in a stream of chunks as cheaply as possible. Only answers with Content-Length
 * are understood; anything else is an error, because guessing would falsify the measurement.
 */
const HEAD_END = '\r\n\r\n';
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

export class ResponseReader {
  private partialHead: Buffer | undefined;
  private bodyBytesLeft = 0;
  private status = 0;

  /** @param onAnswer called with the status when the last byte of an answer has arrived. */
  constructor(private readonly onAnswer: (status: number) => void) {}

  /** @throws Error for an answer without Content-Length or status line. */
  push(chunk: Buffer): void {
    let bytes = this.partialHead === undefined ? chunk : Buffer.concat([this.partialHead, chunk]);
    this.partialHead = undefined;
    while (bytes.length > 0) {
      if (this.bodyBytesLeft === 0) {
        const end = bytes.indexOf(HEAD_END);
        if (end < 0) {
          this.partialHead = bytes;
          return;
        }
        this.readHead(bytes.toString('latin1', 0, end));
        bytes = bytes.subarray(end + HEAD_END.length);
      }
      const taken = Math.min(this.bodyBytesLeft, bytes.length);
      this.bodyBytesLeft -= taken;
      bytes = bytes.subarray(taken);
      if (this.bodyBytesLeft === 0) this.onAnswer(this.status);
    }
  }

  private readHead(head: string): void {
    const length = CONTENT_LENGTH.exec(head)?.[1];
    this.status = Number(head.slice(9, 12));
    if (length === undefined || !head.startsWith('HTTP/1.1 ')) throw new Error(`an answer without Content-Length: ${head.slice(0, 200)}`);
    this.bodyBytesLeft = Number(length);
  }
}
