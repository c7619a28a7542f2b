/**
 * Certificate, key and client authorities of one front door, read again when their files change, so that a renewed
 * certificate needs no restart. Invariant: what is in force fits together; a set that does not is logged and left out.
 */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Clock } from '@paceline/clock';
import type { TlsOptions } from '@paceline/config';
import type { Logger } from '@paceline/telemetry';
import { writeAudit } from './audit.js';
import { FileWatch } from './file-watch.js';

/** PEM bytes. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Authorities that clients' certificates must come from; undefined = the system's. */
  readonly ca: Buffer | undefined;
}

/** Where a front door gets its certificates. */
export interface TlsSource {
  readonly current: TlsMaterial;
  /** Clients must show a certificate of one of the authorities. */
  readonly mutual: boolean;
  /** @returns a function that ends the subscription */
  subscribe(listener: (material: TlsMaterial) => void): () => void;
}

export class TlsFiles implements TlsSource {
  #current: TlsMaterial;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  readonly #watch: FileWatch;

  /** @throws the file system's or the TLS library's error; the message names the file or what does not fit */
  constructor(
    private readonly options: TlsOptions,
    clock: Clock,
    private readonly logger: Logger,
  ) {
    const { certFile, keyFile, caFile } = options;
    this.#watch = new FileWatch([certFile, keyFile, ...(caFile === undefined ? [] : [caFile])], clock, async () => this.#reload());
    try {
      this.#current = read(options);
    } catch (error) {
      this.#watch.close();
      throw error;
    }
  }

  get current(): TlsMaterial {
    return this.#current;
  }

  get mutual(): boolean {
    return this.options.mutual;
  }

  subscribe(listener: (material: TlsMaterial) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#watch.close();
    this.#listeners.clear();
  }

  #reload(): void {
    const event = { action: 'tls.reload', who: 'server', peer: undefined, target: this.options.certFile };
    try {
      this.#current = read(this.options);
      for (const listener of this.#listeners) listener(this.#current);
      writeAudit(this.logger, { ...event, outcome: 'ok', detail: '' });
    } catch (error) {
      const detail = String(error);
      this.logger.error({ file: this.options.certFile, reason: detail }, 'the certificate files cannot be used: those before stay');
      writeAudit(this.logger, { ...event, outcome: 'failed', detail });
    }
  }
}

function read({ certFile, keyFile, caFile }: TlsOptions): TlsMaterial {
  const material = {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ca: caFile === undefined ? undefined : readFileSync(caFile),
  };
  // Throws where a file is no PEM or the key is not the certificate's.
  createSecureContext({ cert: material.cert, key: material.key, ...(material.ca && { ca: material.ca }) });
  return material;
}
