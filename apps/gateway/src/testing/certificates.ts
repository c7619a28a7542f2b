/** For tests: an authority and certificates made by the openssl command, in a folder of their own. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: Buffer;
  readonly key: Buffer;
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

export class Certificates {
  readonly folder = mkdtempSync(join(tmpdir(), 'paceline-tls-'));
  readonly authority: Certificate;

  constructor() {
    const { certFile, keyFile } = this.#files('authority');
    this.#openssl('req', '-x509', ...NEW_KEY, '-keyout', keyFile, '-out', certFile, '-days', '2', '-subj', '/CN=test authority');
    this.authority = read(certFile, keyFile);
  }

  /** A certificate of the authority for localhost, or one that nobody signed for. */
  issue(name: string, signed = true): Certificate {
    const { certFile, keyFile } = this.#files(name);
    const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
    const signers = signed ? ['-CA', this.authority.certFile, '-CAkey', this.authority.keyFile] : [];
    this.#openssl('req', '-x509', ...NEW_KEY, '-keyout', keyFile, '-out', certFile, '-days', '2', ...names, ...signers);
    return read(certFile, keyFile);
  }

  /** @returns the path of a new file */
  write(name: string, content: string | Buffer): string {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }

  #files(name: string): { certFile: string; keyFile: string } {
    return { certFile: join(this.folder, `${name}.pem`), keyFile: join(this.folder, `${name}.key`) };
  }

  #openssl(...words: string[]): void {
    execFileSync('openssl', words, { stdio: 'pipe' });
  }
}

function read(certFile: string, keyFile: string): Certificate {
  return { certFile, keyFile, cert: readFileSync(certFile), key: readFileSync(keyFile) };
}
