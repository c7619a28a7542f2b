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

describe('exchanges recorded from Triton', () => {
  it.each([
    ['main', 600, [`--model-repository=${folder('models')}`]],
    [
      'explicit',
      300,
      [
        `--model-repository=${folder('models')}`,
        `--model-repository=${folder('broken-models')}`,
        '--model-control-mode=explicit',
        '--load-model=add_sub',
        '--load-model=scale_all',
      ],
    ],
  ])(
    'run %s',
    async (name, atLeast, flags) => {
      const all = await outcomes(name, flags);
      if (UPDATE) {
        writeAccepted(
          name,
          all.flatMap(({ accepted, answer, fromRecording }) => (accepted && fromRecording.length > 0 ? [{ ...accepted, answer }] : [])),
        );
      }
      expect(
        all
          .filter(({ failures }) => failures.length > 0)
          .map(report)
          .join('\n'),
      ).toBe('');
      expect(all.length).toBeGreaterThanOrEqual(atLeast);
    },
    120_000,
  );

  it('every accepted difference has a reason, and every reason a difference', () => {
    const used = new Set(['main', 'explicit'].flatMap((name) => readAccepted(name).map(({ reason }) => reason)));
    expect([...used].filter((reason) => !isReason(reason))).toEqual([]);
    expect(Object.keys(REASONS).filter((reason) => !used.has(reason))).toEqual([]);
  });
});
