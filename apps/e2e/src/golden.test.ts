/**
 * Exchanges recorded from Triton 2.51, sent again to a real server: each answer is as recorded, or exactly as the list of
 * accepted differences says, for a reason that stands in REASONS. See golden/README.md.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { isReason, REASONS } from './support/golden/reasons.js';
import { readAccepted, readRecordings, writeAccepted } from './support/golden/recording.js';
import { replay, type StepOutcome } from './support/golden/replay.js';
import { startServer } from './support/server-process.js';

const folder = (name: string): string => fileURLToPath(new URL(`golden/${name}`, import.meta.url));

/** Writes the answers of now into the list; what stands in no list stays a failure. */
const UPDATE = process.env['UPDATE_ACCEPTED'] === '1';

function report({ recording, step, failures, answer }: StepOutcome): string {
  const shown = JSON.stringify(answer, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
  return [`${recording.id} step ${step} (${recording.group}: ${recording.note})`, ...failures, `answered ${shown.slice(0, 600)}`].join(
    '\n  ',
  );
}

async function outcomes(name: string, flags: readonly string[]): Promise<readonly StepOutcome[]> {
  const server = await startServer(['--id=triton', ...flags]);
  try {
    return await replay(readRecordings(name), readAccepted(name), server);
  } finally {
    await server.stop();
  }
}

const MODELS = `--model-repository=${folder('models')}`;
const BROKEN = `--model-repository=${folder('broken-models')}`;
const EXPLICIT = '--model-control-mode=explicit';
const RESTRICTED = 'model-repository,statistics:admin-key=secret';
const ONE_IS_BROKEN = [BROKEN, EXPLICIT, '--load-model=ok_a', '--load-model=bad_dtype', '--exit-on-error=false'];

/** Name of the run, steps in it, flags of its server. */
const RUNS: readonly (readonly [string, number, readonly string[]])[] = [
  ['main', 629, [MODELS]],
  ['explicit', 375, [MODELS, BROKEN, EXPLICIT, '--load-model=add_sub', '--load-model=scale_all']],
  ['strict-config', 12, [MODELS, BROKEN, EXPLICIT, '--load-model=add_sub', '--disable-auto-complete-config=true']],
  ['broken', 7, [...ONE_IS_BROKEN, '--strict-readiness=true']],
  ['broken-lax', 15, [...ONE_IS_BROKEN, '--strict-readiness=false']],
  [
    'restricted',
    22,
    [MODELS, EXPLICIT, '--load-model=add_sub', `--http-restricted-api=${RESTRICTED}`, `--grpc-restricted-protocol=${RESTRICTED}`],
  ],
  ['poll', 6, [MODELS, '--model-control-mode=poll', '--repository-poll-secs=3600']],
];

describe('exchanges recorded from Triton', () => {
  it.each(RUNS)(
    'run %s',
    async (name, steps, flags) => {
      const all = await outcomes(name, flags);
      if (UPDATE) {
        writeAccepted(
          name,
          all.flatMap(({ accepted, answer, fromRecording }) => (accepted && fromRecording.length > 0 ? [{ ...accepted, answer }] : [])),
        );
      }
      const failed = all.filter(({ failures }) => failures.length > 0);
      expect(failed.map(report).join('\n')).toBe('');
      expect(all).toHaveLength(steps);
    },
    120_000,
  );

  it('every accepted difference has a reason, and every reason a difference', () => {
    const used = new Set(RUNS.flatMap(([name]) => readAccepted(name).map(({ reason }) => reason)));
    expect([...used].filter((reason) => !isReason(reason))).toEqual([]);
    expect(Object.keys(REASONS).filter((reason) => !used.has(reason))).toEqual([]);
  });
});
