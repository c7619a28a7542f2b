/**
 * The access log: a line for each inference request, appended to a file or standard output. Lines are gathered and written
 * behind the requests. Invariant: at most {@link MAX_WAITING_BYTES} wait for a slow disk; what has no room is dropped and
 * counted, and no request ever waits.
 */
import { mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '@paceline/clock';
import type { Logger } from '@paceline/telemetry';
import sonic from 'sonic-boom';
import { accessLine, type AccessEntry } from './access-line.js';

const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Lines are handed on when there are this many characters of them, or at the next tick of {@link FLUSH_US}. */
const GATHERED_LENGTH = 8 * 1024;
const FLUSH_US = 250_000;

export class AccessLog {
  writtenLines = 0;
  droppedLines = 0;
  readonly #out: sonic.SonicBoom;
  #gathered = '';
  #gatheredLines = 0;
  #armed = false;
  #failing = false;
  #closed = false;

  /** @param path `-` = standard output. Directories are made. @throws the file system's error where it cannot be opened */
  constructor(
    path: string,
    readonly clock: Clock,
    logger: Logger,
  ) {
    const fd = path === '-' ? process.stdout.fd : openForAppend(path);
    this.#out = new sonic.SonicBoom({ fd, sync: false, maxLength: MAX_WAITING_BYTES });
    // Told before `write` returns.
    this.#out.on('drop', () => void (this.droppedLines += this.#gatheredLines));
    this.#out.on('error', (error) => {
      if (!this.#failing) logger.error({ err: error, file: path }, 'the access log cannot be written');
      this.#failing = true;
    });
    this.#out.on('write', () => void (this.#failing = false));
  }

  write(entry: AccessEntry): void {
    if (this.#closed) return;
    this.writtenLines += 1;
    this.#gathered += accessLine(entry);
    this.#gatheredLines += 1;
    if (this.#gathered.length >= GATHERED_LENGTH) this.#handOn();
    else if (!this.#armed) {
      this.#armed = true;
      this.clock.setTimer(FLUSH_US, () => {
        this.#armed = false;
        this.#handOn();
      });
    }
  }

  /** Writes what waits, and ends. Resolves also where the file cannot be written. */
  close(): Promise<void> {
    this.#handOn();
    this.#closed = true;
    return new Promise((resolve) => {
      this.#out.once('close', resolve);
      this.#out.once('error', () => resolve());
      this.#out.end();
    });
  }

  #handOn(): void {
    if (this.#gathered === '' || this.#closed) return;
    this.#out.write(this.#gathered);
    this.#gathered = '';
    this.#gatheredLines = 0;
  }
}

function openForAppend(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  return openSync(path, 'a', 0o640);
}
