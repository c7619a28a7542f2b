/** An authority that lives as long as a test, and the certificates it signs, as PEM files in a folder of their own. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
  type X509Certificate,
} from '@peculiar/x509';

/** PEM texts and the files that hold them. */
export interface TestCertificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 24 * 3600 * 1000;

export class TestAuthority {
  readonly folder = mkdtempSync(join(tmpdir(), 'paceline-tls-'));

  private constructor(
    private readonly keys: webcrypto.CryptoKeyPair,
    private readonly root: X509Certificate,
  ) {}

  static async create(): Promise<TestAuthority> {
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const extensions = [new BasicConstraintsExtension(true, undefined, true)];
    const root = await X509CertificateGenerator.createSelfSigned(
      { ...lifetime(), name: 'CN=test authority', keys, signingAlgorithm: ALGORITHM, extensions },
      webcrypto,
    );
    return new TestAuthority(keys, root);
  }

  /** PEM of the authority's own certificate, and its file. */
  get certificate(): { readonly cert: string; readonly certFile: string } {
    const cert = this.root.toString('pem');
    return { cert, certFile: this.write('authority.pem', cert) };
  }

  /** A certificate for localhost and 127.0.0.1, valid for two days. @param signed false = of nobody but itself */
  async issue(name: string, signed = true): Promise<TestCertificate> {
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const names = new SubjectAlternativeNameExtension([
      { type: 'dns', value: 'localhost' },
      { type: 'ip', value: '127.0.0.1' },
    ]);
    const certificate = await X509CertificateGenerator.create(
      {
        ...lifetime(),
        subject: `CN=${name}`,
        issuer: signed ? this.root.subject : `CN=${name}`,
        publicKey: keys.publicKey,
        signingKey: signed ? this.keys.privateKey : keys.privateKey,
        signingAlgorithm: ALGORITHM,
        extensions: [names],
      },
      webcrypto,
    );
    const cert = certificate.toString('pem');
    const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), PemConverter.PrivateKeyTag);
    return { cert, key, certFile: this.write(`${name}.pem`, cert), keyFile: this.write(`${name}.key`, key) };
  }

  /** @returns the path of the file */
  write(name: string, content: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

function lifetime(): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + DAY_MS) };
}
