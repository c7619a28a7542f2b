/** Each kind of waiting has its own limit, and a request under way has none here. */
import { describe, expect, test } from '@jest/globals';
import { judgeTimeout, type ConnectionState } from './connection-timeouts.js';
import { DEFAULT_DATA_PLANE_LIMITS } from './data-plane-limits.js';

const LIMITS = { ...DEFAULT_DATA_PLANE_LIMITS, headerTimeoutS: 10, stallTimeoutS: 30, requestTimeoutS: 300, idleTimeoutS: 75 };
const IDLE: ConnectionState = { quietS: 0, requestS: 0, running: false, ending: false, body: undefined, partialHead: false };
const BODY = { filledBytes: 3, totalBytes: 9 };

describe.each<[string, Partial<ConnectionState>, 'quietS' | 'requestS', number, 'cut' | RegExp]>([
  ['idle', {}, 'quietS', 75, 'cut'],
  ['the last reply is out', { ending: true }, 'quietS', 2, 'cut'],
  ['a partial head, however busy', { partialHead: true }, 'requestS', 10, /headers are incomplete after 10 s/],
  ['a silent body', { body: BODY }, 'quietS', 30, /3 of 9 bytes came before 30 s/],
  ['a trickling body', { body: BODY }, 'requestS', 300, /3 of 9 bytes came in 300 s/],
])('%s', (_name, state, clock, limitS, verdict) => {
  test(`waits for ${limitS} s and not longer`, () => {
    expect(judgeTimeout({ ...IDLE, ...state, [clock]: limitS }, LIMITS)).toEqual({ kind: 'wait' });
    const judged = judgeTimeout({ ...IDLE, ...state, [clock]: limitS + 1 }, LIMITS);
    if (verdict === 'cut') expect(judged).toEqual({ kind: 'cut' });
    else expect(judged).toMatchObject({ kind: 'refuse', text: expect.stringMatching(verdict) });
  });

  test('waits for ever while a request is under way', () => {
    expect(judgeTimeout({ ...IDLE, ...state, running: true, quietS: 1e6, requestS: 1e6 }, LIMITS)).toEqual({ kind: 'wait' });
  });
});
