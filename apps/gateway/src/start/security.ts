/** Reads the files that say who may do what, before any port is opened; all of them are read again when they change. */
import type { Clock } from '@paceline/clock';
import type { ServeOptions, TlsOptions } from '@paceline/config';
import type { Logger } from '@paceline/telemetry';
import { AccessPolicy, KeyFile, TlsFiles } from '../access/index.js';
import { StartError } from '@paceline/nest-kit';

export interface Security {
  readonly access: AccessPolicy;
  /** undefined = the port is not encrypted. */
  readonly httpTls: TlsFiles | undefined;
  readonly grpcTls: TlsFiles | undefined;
  /** Stops watching the files. */
  close(): void;
}

/** @throws StartError that names the flag and what is wrong with its file */
export function openSecurity({ access, http, grpc }: ServeOptions, logger: Logger, clock: Clock): Security {
  const opened: { close(): void }[] = [];
  const open = <File extends { close(): void }>(flags: string, make: () => File): File => {
    try {
      const file = make();
      opened.push(file);
      return file;
    } catch (cause) {
      for (const file of opened) file.close();
      throw new StartError(`${flags} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
  };
  const tls = (flags: string, enabled: boolean, options: TlsOptions | undefined): TlsFiles | undefined =>
    options === undefined || !enabled ? undefined : open(flags, () => new TlsFiles(options, clock, logger));
  const { keyFile } = access;
  const keys = keyFile === undefined ? undefined : open('--api-key-file', () => new KeyFile(keyFile, clock, logger));
  return {
    access: new AccessPolicy({ ...access, keys: keys && (() => keys.ring) }),
    httpTls: tls('--http-tls-cert, --http-tls-key and --http-tls-ca', http.enabled, http.tls),
    grpcTls: tls('--grpc-server-cert, --grpc-server-key and --grpc-root-cert', grpc.enabled, grpc.tls),
    close: () => {
      for (const file of opened) file.close();
    },
  };
}
