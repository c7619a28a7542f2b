/**
 * Sees to it that nothing outlives a launcher that was killed: a tiny shell holds a pipe from it, and when that breaks it
 * tells all processes to end, waits for them a while, kills the rest and Redis, and removes the files of the launcher.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const WAIT_TENTHS = 100;
const SCRIPT = `
trap '' INT TERM HUP
cat > /dev/null
processes=$(cat "$1/processes")
redis=$(cat "$1/redis")
for pid in $processes; do kill -TERM "$pid"; kill -CONT "$pid"; done
tenths=0
while [ $tenths -lt ${WAIT_TENTHS} ]; do
  left=
  for pid in $processes; do kill -0 "$pid" && left=1; done
  [ -z "$left" ] && break
  sleep 0.1
  tenths=$((tenths + 1))
done
for pid in $processes $redis; do kill -KILL "$pid"; done
rm -rf "$1"
[ -n "$2" ] && rm -f "$2"
`;

export class OrphanGuard {
  readonly #shell: ChildProcess;

  /**
   * @param folder of the launcher alone; removed with it
   * @param stateFile removed as well
   */
  constructor(
    private readonly folder: string,
    stateFile: string | undefined,
  ) {
    this.watch([], undefined);
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'guard', folder, stateFile ?? ''], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#shell.on('error', () => undefined);
    this.#shell.stdin?.on('error', () => undefined);
  }

  /** Says which processes there are now. */
  watch(processes: readonly number[], redis: number | undefined): void {
    writeFileSync(join(this.folder, 'processes'), processes.join('\n'));
    writeFileSync(join(this.folder, 'redis'), redis === undefined ? '' : String(redis));
  }

  /** The launcher has ended everything itself. */
  close(): void {
    this.#shell.kill('SIGKILL');
  }
}
