/** What `paceline streams` found, as text for people and for programs. */
import type { Member } from '@paceline/protocol';
import type { DeadEntry, InspectedPartition } from '@paceline/streams';
import { alignColumns } from './columns.js';

export interface StreamsReport {
  readonly members: readonly Pick<Member, 'role' | 'id' | 'address' | 'draining'>[];
  readonly partitions: readonly ({ readonly partition: number } & InspectedPartition)[];
  /** The last ones of each partition. */
  readonly dead: readonly ({ readonly partition: number } & DeadEntry)[];
}

/** For programs. */
export function jsonOf({ members, partitions, dead }: StreamsReport): string {
  return JSON.stringify({ members, partitions, dead: dead.map((entry) => ({ ...entry, bytes: entry.bytes.toString('base64') })) });
}

/** For people: two tables, the second one only where something was set aside. */
export function textOf({ members, partitions, dead }: StreamsReport): string {
  const live = new Set(members.map(({ id }) => id));
  const ownerOf = (owner: string | undefined): string => (owner === undefined ? 'nobody' : live.has(owner) ? owner : `${owner} (gone)`);
  const head = ['partition', 'owner', 'epoch', 'lease ms', 'entries', 'lag ms', 'dead', 'cursor'];
  const rows = partitions.map((each) => [
    String(each.partition),
    ownerOf(each.owner),
    ...[each.epoch, each.leaseMs, each.entries, each.lagMs, each.dead].map(String),
    each.cursor,
  ]);
  const text = [
    `members: ${['gateway', 'scheduler', 'worker'].map((role) => `${members.filter((member) => member.role === role).length} ${role}s`).join(', ')}`,
    '',
    ...alignColumns([head, ...rows]),
  ];
  if (dead.length === 0) return text.join('\n');
  const deadRows = dead.map(({ partition, entry, setAsideMs, size, reason }) => [
    String(partition),
    entry,
    new Date(setAsideMs).toISOString(),
    String(size),
    reason,
  ]);
  return [...text, '', ...alignColumns([['partition', 'undecodable entry', 'set aside', 'bytes', 'reason'], ...deadRows])].join('\n');
}
