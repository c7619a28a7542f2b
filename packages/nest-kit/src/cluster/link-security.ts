/** How processes of a cluster know each other, read from the files that the flags name, before any port is opened. */
import { readFileSync } from 'node:fs';
import type { ClusterOptions } from '@paceline/config';
import { readFirstLine } from '../process/read-first-line.js';
import { StartError } from '../process/start-error.js';

/** PEM texts. */
export interface LinkTls {
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly ca: string | undefined;
}

export interface LinkSecurity {
  /** undefined = none is asked for, which is for addresses of this machine alone. */
  readonly secret: string | undefined;
  /** undefined = connections are not encrypted. */
  readonly tls: LinkTls | undefined;
}

/** Shorter ones can be guessed from one recorded handshake. */
const SHORTEST_SECRET = 16;

/** @throws StartError that names the flag and what is wrong */
export function readLinkSecurity({ secret: fromEnvironment, secretFile, link }: ClusterOptions): LinkSecurity {
  const secret = secretFile === undefined ? fromEnvironment : readFirstLine('--cluster-secret-file', secretFile);
  if (secret !== undefined && secret.length < SHORTEST_SECRET) {
    const where = secretFile === undefined ? 'PACELINE_CLUSTER_SECRET' : `--cluster-secret-file=${secretFile}`;
    throw new StartError(`${where}: expected at least ${SHORTEST_SECRET} characters, found ${secret.length}`);
  }
  const { tls } = link;
  if (tls === undefined) return { secret, tls: undefined };
  return {
    secret,
    tls: {
      certificate: readPem('--link-tls-certificate-file', tls.certificateFile),
      key: readPem('--link-tls-key-file', tls.keyFile),
      ca: readPem('--link-tls-ca-file', tls.caFile),
    },
  };
}

function readPem(flag: string, file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(`${flag}=${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
