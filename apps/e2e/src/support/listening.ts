/** Which TCP ports a process listens on, read from /proc: the test's own view, not the process's. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const LISTEN = '0A';
/** 127.0.0.1 and ::1 as the kernel writes them. */
const LOOPBACK = new Set(['0100007F', '00000000000000000000000001000000']);

export interface ListeningPort {
  readonly port: number;
  readonly loopback: boolean;
}

/** In rising order. */
export function listeningPorts(pid: number): readonly ListeningPort[] {
  const own = socketsOf(pid);
  const ports: ListeningPort[] = [];
  for (const table of ['tcp', 'tcp6']) {
    for (const line of readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      const [address = '', port = ''] = local.split(':');
      if (state === LISTEN && own.has(inode)) ports.push({ port: Number.parseInt(port, 16), loopback: LOOPBACK.has(address) });
    }
  }
  return ports.sort((a, b) => a.port - b.port);
}

function socketsOf(pid: number): ReadonlySet<string> {
  const inodes = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // It was closed while we were looking.
    }
  }
  return inodes;
}
