/** How processes of a cluster know each other, read from the files that the flags name, before any port is opened. */
import { readFileSync } from 'node:fs';
import type { ClusterOptions } from '@paceline/config';
import { readFirstLine } from '../process/read-first-line.js';
import { StartError } from '../process/start-error.js';

/** PEM texts. */
export interface LinkTls {
  readonly certificate?: string;
  readonly key?: string;
  /** With it certificates of the other side must be of that authority. */
  readonly ca?: string;
}

/** May be spread into the options of a link. */
export interface LinkSecurity {
  /** undefined = none is asked for, which is for addresses of this machine alone. */
  readonly secret: Uint8Array | undefined;
  /** Absent = connections are not encrypted. */
  readonly tls?: LinkTls;
}

/** Shorter ones can be guessed from one recorded handshake. */
const SHORTEST_SECRET = 16;

/** @throws StartError that names the flag and what is wrong */
export function readLinkSecurity({ secret: fromEnvironment, secretFile, link }: ClusterOptions): LinkSecurity {
  const text = secretFile === undefined ? fromEnvironment : readFirstLine('--cluster-secret-file', secretFile);
  if (text !== undefined && text.length < SHORTEST_SECRET) {
    const where = secretFile === undefined ? 'PACELINE_CLUSTER_SECRET' : `--cluster-secret-file=${secretFile}`;
    throw new StartError(`${where}: expected at least ${SHORTEST_SECRET} characters, found ${text.length}`);
  }
  const secret = text === undefined ? undefined : new TextEncoder().encode(text);
  const { tls } = link;
  if (tls === undefined) return { secret };
  const { certificateFile, keyFile, caFile } = tls;
  return {
    secret,
    tls: {
      ...(certificateFile !== undefined && { certificate: readPem('--link-tls-certificate-file', certificateFile) }),
      ...(keyFile !== undefined && { key: readPem('--link-tls-key-file', keyFile) }),
      ...(caFile !== undefined && { ca: readPem('--link-tls-ca-file', caFile) }),
    },
  };
}

function readPem(flag: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(`${flag}=${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
