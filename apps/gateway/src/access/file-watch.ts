/**
 * Tells when files have changed, by looking once a second: that also sees files that are replaced, linked anew (as mounted
 * secrets are) or on file systems that send no events. Changes are reported one after the other.
 */
import { statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock, Timer } from '@paceline/clock';

const INTERVAL_US = 1_000_000;

export class FileWatch {
  #seen: string;
  #timer: Timer | undefined;
  #closed = false;

  /** Make it before the files are read for the first time. @param onChange must not throw */
  constructor(
    private readonly paths: readonly string[],
    private readonly clock: Clock,
    private readonly onChange: () => Promise<void>,
  ) {
    this.#seen = paths.map((path) => mark(statSync(path, { bigint: true, throwIfNoEntry: false }))).join(' ');
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #arm(): void {
    if (!this.#closed) this.#timer = this.clock.setTimer(INTERVAL_US, () => void this.#look());
  }

  async #look(): Promise<void> {
    const marks = await Promise.all(this.paths.map((path) => stat(path, { bigint: true }).then(mark, () => ABSENT)));
    const now = marks.join(' ');
    if (now !== this.#seen && !this.#closed) {
      this.#seen = now;
      await this.onChange();
    }
    this.#arm();
  }
}

const ABSENT = 'absent';

function mark(file: { ino: bigint; size: bigint; mtimeNs: bigint } | undefined): string {
  return file === undefined ? ABSENT : `${file.ino}:${file.size}:${file.mtimeNs}`;
}
