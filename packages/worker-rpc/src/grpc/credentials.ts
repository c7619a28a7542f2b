/** TLS of the stream between schedulers and workers, by the same settings as every other connection of the cluster. */
import { credentials, ServerCredentials, type ChannelCredentials } from '@grpc/grpc-js';
import type { LinkTls } from '@paceline/link';

const pem = (text: string | undefined): Buffer | null => (text === undefined ? null : Buffer.from(text));

/** For a scheduler. Without `ca` the system's authorities count. */
export function channelCredentialsOf(tls: LinkTls | undefined): ChannelCredentials {
  if (!tls) return credentials.createInsecure();
  return credentials.createSsl(pem(tls.ca), pem(tls.key), pem(tls.certificate));
}

/** For a worker. With `ca` schedulers must show a certificate of that authority. @throws Error where certificate or key is missing */
export function serverCredentialsOf(tls: LinkTls | undefined): ServerCredentials {
  if (!tls) return ServerCredentials.createInsecure();
  const [certificate, key] = [pem(tls.certificate), pem(tls.key)];
  if (!certificate || !key) throw new Error('a worker that speaks TLS needs a certificate and its key');
  return ServerCredentials.createSsl(pem(tls.ca), [{ cert_chain: certificate, private_key: key }], tls.ca !== undefined);
}
