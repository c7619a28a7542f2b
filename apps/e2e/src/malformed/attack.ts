/** Runs a range of cases against a server, some at a time, and tallies how each family ended. */
import type { MalformedCase } from './case.js';
import { malformedCase } from './generate.js';
import { sendCase, type Ports } from './send.js';

export interface AttackReport {
  /** Per family: outcome → how often. */
  readonly tally: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** One text per case that ended wrong, with all it takes to send that case again. */
  readonly findings: readonly string[];
}

export interface AttackPlan {
  readonly ports: Ports;
  readonly seed: number;
  readonly indexes: readonly number[];
  readonly atATime: number;
}

/** A case as a person reads it; the seed and index are what makes it again. */
export function describeCase(attack: MalformedCase, seed: number, index: number): string {
  const bytes = attack.kind === 'socket' ? Buffer.concat(attack.pieces) : attack.body;
  const start = bytes.toString('latin1', 0, 240).replaceAll(/[^\x20-\x7e]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
  const headers = attack.kind === 'grpc' ? ` ${JSON.stringify(attack.headers).slice(0, 200)}` : '';
  return `MALFORMED_SEED=${seed} MALFORMED_ONLY=${index} (${attack.family}, ${attack.what})${headers}\n    ${bytes.length} bytes: ${start}`;
}

export async function runAttack({ ports, seed, indexes, atATime }: AttackPlan): Promise<AttackReport> {
  const tally: Record<string, Record<string, number>> = {};
  const findings: string[] = [];
  const rest = [...indexes].reverse();
  const lane = async (): Promise<void> => {
    for (let index = rest.pop(); index !== undefined; index = rest.pop()) {
      const attack = malformedCase(seed, index);
      const { outcome, finding } = await sendCase(attack, ports);
      const family = (tally[attack.family] ??= {});
      family[outcome] = (family[outcome] ?? 0) + 1;
      if (finding !== undefined) findings.push(`${finding}\n  ${describeCase(attack, seed, index)}`);
    }
  };
  await Promise.all(Array.from({ length: atATime }, lane));
  return { tally, findings };
}
