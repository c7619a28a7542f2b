/** What a figure was measured on: without it a figure means nothing. */
import { execFileSync } from 'node:child_process';
import { cpus, loadavg, totalmem } from 'node:os';
import { readFileSync } from 'node:fs';
import { REPOSITORY_ROOT } from '../paths.js';
import { CAN_PIN } from '../targets/pinned.js';

export interface MachineFacts {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly node: string;
  readonly revision: string;
  readonly loadAverage: number;
  readonly pinned: boolean;
}

function revision(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], { cwd: REPOSITORY_ROOT, encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

export function machineFacts(): MachineFacts {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryBytes: totalmem(),
    node: process.version,
    revision: revision(),
    loadAverage: loadavg()[0] ?? 0,
    pinned: CAN_PIN,
  };
}

/** Seconds that a core was busy with anything since boot; NaN where /proc/stat is not there. */
export function coreBusySeconds(core: number): number {
  let text: string;
  try {
    text = readFileSync('/proc/stat', 'utf8');
  } catch {
    return Number.NaN;
  }
  const fields = new RegExp(`^cpu${core} (.*)$`, 'm').exec(text)?.[1]?.split(' ').map(Number) ?? [];
  const [user = Number.NaN, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = fields;
  return (user + nice + system + irq + softIrq + steal) / 100;
}
