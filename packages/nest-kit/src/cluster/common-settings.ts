/**
 * Whether a process that is about to join has the settings that the others have. One that has another secret or another
 * number of partitions would take leases and hold places without serving anybody, so it is told before anybody sees it.
 */
import { scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import type { ClusterOptions } from '@paceline/config';
import type { CommonSettings, Member } from '@paceline/protocol';

const derive = promisify(scrypt) as (secret: Uint8Array, salt: string, bytes: number) => Promise<Buffer>;

/** Enough to tell secrets apart, too little and too slow to make for finding one. */
const MARK_BYTES = 8;

/** @param secret undefined = there is none */
export async function commonSettings(
  { partitions, prefix }: Pick<ClusterOptions, 'partitions' | 'prefix'>,
  secret: Uint8Array | undefined,
): Promise<CommonSettings> {
  const secretMark = secret === undefined ? '' : (await derive(secret, `paceline cluster ${prefix}`, MARK_BYTES)).toString('hex');
  return { partitions, secretMark };
}

/** @returns what is wrong and which flag to look at; undefined = the settings are those of all members */
export function disagreement(own: CommonSettings, members: readonly Member[]): string | undefined {
  for (const { role, id, common } of members) {
    if (common === undefined) continue;
    const other = `${role} ${id}, which is in the cluster already`;
    if (common.secretMark !== own.secretMark) {
      const found = own.secretMark === '' ? 'no cluster secret is set here' : 'another cluster secret is set here';
      const expected = common.secretMark === '' ? `${other}, has none` : `${other}, has one`;
      return `--cluster-secret-file or PACELINE_CLUSTER_SECRET: ${found}, but ${expected}; all processes of a cluster need the same`;
    }
    if (common.partitions !== own.partitions) {
      return `--partitions=${own.partitions}: ${other}, has ${common.partitions}; all processes of a cluster need the same`;
    }
  }
  return undefined;
}
