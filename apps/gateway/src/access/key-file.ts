/**
 * The key file in force: read at start, read again when it changes. Invariant: the keys are always those of the last
 * reading without a fault, so that a broken or half-written file neither opens nor shuts a door.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Clock } from '@paceline/clock';
import { KeyFileError, parseKeyFile } from '@paceline/config';
import type { Logger } from '@paceline/telemetry';
import { writeAudit } from './audit.js';
import { FileWatch } from './file-watch.js';
import { KeyRing } from './key-ring.js';

export class KeyFile {
  #ring: KeyRing;
  readonly #watch: FileWatch;

  /** @throws KeyFileError for what stands in it; the file system's error where it cannot be read */
  constructor(
    private readonly path: string,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {
    this.#watch = new FileWatch([path], clock, () => this.#reload());
    try {
      this.#ring = new KeyRing(parseKeyFile(readFileSync(path, 'utf8'), path), clock);
    } catch (error) {
      this.#watch.close();
      throw error;
    }
  }

  get ring(): KeyRing {
    return this.#ring;
  }

  close(): void {
    this.#watch.close();
  }

  async #reload(): Promise<void> {
    const event = { action: 'keys.reload', who: 'server', peer: undefined, target: basename(this.path) };
    try {
      this.#ring = new KeyRing(parseKeyFile(await readFile(this.path, 'utf8'), this.path), this.clock, this.#ring);
      writeAudit(this.logger, { ...event, outcome: 'ok', detail: `${this.#ring.size} keys` });
    } catch (error) {
      const detail = error instanceof KeyFileError ? error.faults.join('; ') : String(error);
      this.logger.error({ file: this.path, reason: detail }, 'the key file cannot be used: the keys stay as they were');
      writeAudit(this.logger, { ...event, outcome: 'failed', detail });
    }
  }
}
