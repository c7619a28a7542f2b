/**
 * Sees to it that no host outlives its worker. A host ends by itself when its socket does, but not while it is inside
 * the runtime; so one tiny shell holds a pipe from the worker, and when that breaks it kills the hosts that are left.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import type { Logger } from '@paceline/telemetry';

const SCRIPT = `
trap '' INT TERM HUP
hosts=' '
while read -r op pid; do
  case $op in
    +) hosts="$hosts$pid " ;;
    -) hosts="\${hosts%% $pid *} \${hosts#* $pid }" ;;
  esac
done
sleep 1
for pid in $hosts; do kill -9 "$pid" 2>/dev/null; done
`;

export class OrphanGuard {
  #shell: ChildProcess | undefined;
  readonly #hosts = new Set<number>();
  #closed = false;

  constructor(private readonly logger: Logger) {}

  add(pid: number): void {
    this.#hosts.add(pid);
    if (this.#shell) this.#tell(`+ ${pid}\n`);
    else this.#start();
  }

  remove(pid: number): void {
    if (this.#hosts.delete(pid)) this.#tell(`- ${pid}\n`);
  }

  /** Ends the shell; the caller has ended the hosts. */
  async close(): Promise<void> {
    this.#closed = true;
    const shell = this.#shell;
    if (!shell) return;
    const ended = new Promise((resolve) => shell.once('close', resolve));
    shell.kill('SIGKILL');
    await ended;
  }

  #tell(line: string): void {
    this.#shell?.stdin?.write(line);
  }

  #start(): void {
    const shell: ChildProcess = spawn('/bin/sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    this.#shell = shell;
    shell.once('error', (error) => this.logger.warn({ err: error }, 'no guard for instance hosts: a hung one may outlive a killed server'));
    shell.once('close', () => {
      this.#shell = undefined;
      if (!this.#closed && this.#hosts.size > 0 && shell.pid !== undefined) this.#start();
    });
    // Without descriptors left there is no pipe; the error event says so.
    shell.stdin?.on('error', () => undefined);
    for (const pid of this.#hosts) this.#tell(`+ ${pid}\n`);
  }
}
