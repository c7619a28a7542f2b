/** Certificates of a front door in the form grpc-js takes them, renewed for new connections when their files change. */
import { experimental, ServerCredentials } from '@grpc/grpc-js';
import type { TlsMaterial, TlsSource } from './tls-files.js';

type Listener<Update> = (update: Update | null) => void;
type IdentityListener = Listener<{ certificate: Buffer; privateKey: Buffer }>;
type CaListener = Listener<{ caCertificate: Buffer }>;

/** @param source undefined = the port is not encrypted */
export function serverCredentials(source: TlsSource | undefined): ServerCredentials {
  if (source === undefined) return ServerCredentials.createInsecure();
  const provider = new SourceProvider(source);
  // The declaration names the two the other way round; the first is the server's own certificate.
  return experimental.createCertificateProviderServerCredentials(
    provider,
    source.mutual && source.current.ca !== undefined ? provider : null,
    source.mutual,
  );
}

class SourceProvider {
  readonly #ends = new Map<IdentityListener | CaListener, () => void>();

  constructor(private readonly source: TlsSource) {}

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#add(listener, ({ cert, key }) => listener({ certificate: cert, privateKey: key }));
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#add(listener, ({ ca }) => listener(ca === undefined ? null : { caCertificate: ca }));
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#remove(listener);
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.#remove(listener);
  }

  #add(listener: IdentityListener | CaListener, tell: (material: TlsMaterial) => void): void {
    this.#ends.set(listener, this.source.subscribe(tell));
    // Not before the call has returned: the credentials are still being set up.
    queueMicrotask(() => tell(this.source.current));
  }

  #remove(listener: IdentityListener | CaListener): void {
    this.#ends.get(listener)?.();
    this.#ends.delete(listener);
  }
}
