/** Flags that say who may do what, and how connections are protected. */
import { flag, optionalFlag, repeatableFlag } from '../flag.js';
import { origin, restrictedApi, text, toggle } from '../flag-types.js';

export const accessFlags = {
  'api-key-file': optionalFlag(
    'Access',
    text('<file>'),
    'no keys, inference is open and management local',
    'File of API keys, as paceline key create writes it; read again when it changes. With it everything but liveness needs a key',
  ),
  'http-restricted-api': repeatableFlag(
    'Access',
    restrictedApi,
    'none',
    'HTTP APIs that need the header <key> with this value: health, metadata, inference, model-config, model-repository, statistics, trace, logging, shared-memory, separated by commas; may be repeated',
  ),
  'grpc-restricted-protocol': repeatableFlag(
    'Access',
    restrictedApi,
    'none',
    'The same for gRPC, where the metadata is called triton-grpc-protocol-<key>',
  ),
  'http-cors-origin': repeatableFlag(
    'Access',
    origin,
    'none: no web page of another origin may read answers',
    'Origin whose web pages may call the server over HTTP, e.g. https://app.example.com; may be repeated. * means any',
  ),
  'http-tls-cert': optionalFlag('Access', text('<file>'), 'plain HTTP', 'Certificate of the HTTP port (PEM, chain included)'),
  'http-tls-key': optionalFlag('Access', text('<file>'), 'not set', 'Private key of that certificate (PEM)'),
  'http-tls-ca': optionalFlag('Access', text('<file>'), 'not set', 'Authorities that certificates of HTTP clients must come from (PEM)'),
  'http-tls-mutual': flag('Access', toggle, 'false', 'Refuse HTTP clients without a certificate of --http-tls-ca'),
  'grpc-use-ssl': flag('Access', toggle, 'false', 'Speak TLS on the gRPC port'),
  'grpc-use-ssl-mutual': flag('Access', toggle, 'false', 'Speak TLS and refuse gRPC clients without a certificate of --grpc-root-cert'),
  'grpc-server-cert': optionalFlag('Access', text('<file>'), 'not set', 'Certificate of the gRPC port (PEM, chain included)'),
  'grpc-server-key': optionalFlag('Access', text('<file>'), 'not set', 'Private key of that certificate (PEM)'),
  'grpc-root-cert': optionalFlag('Access', text('<file>'), 'not set', 'Authorities that certificates of gRPC clients must come from (PEM)'),
};
