/** The checker that judges the cluster is judged here: what is no breach, and that everything else is one. */
import { describe, expect, it } from '@jest/globals';
import { Books } from './books.js';

const UNAVAILABLE = { kind: 'refused', code: 'UNAVAILABLE', text: 'gone' } as const;

describe('the books', () => {
  it('count a right answer, and nothing else as one', () => {
    const books = new Books(1000);
    books.end(books.begin(0, 'm', 'a', 'json'), { kind: 'right' });
    books.end(books.begin(0, 'm', 'b', 'json'), { kind: 'wrong', text: 'expected 1, found 2' });
    expect(books.right).toBe(1);
    expect(books.breaches).toEqual([expect.stringContaining('expected 1, found 2')]);
    expect(books.open).toBe(0);
  });

  it('refuse a second end', () => {
    const books = new Books(1000);
    const request = books.begin(0, 'm', 'a', 'json');
    books.end(request, { kind: 'right' });
    expect(() => books.end(request, { kind: 'right' })).toThrow('ended twice');
  });

  it('call every failure a breach while nothing is broken', () => {
    const books = new Books(1000);
    for (const outcome of [UNAVAILABLE, { kind: 'cut' }, { kind: 'unreached' }] as const)
      books.end(books.begin(0, 'm', 'a', 'json'), outcome);
    expect(books.breaches).toHaveLength(3);
  });

  it('excuse what an excuse allows, of its gateway, of requests that were under way meanwhile', () => {
    const books = new Books(1000);
    const early = books.begin(1, 'm', 'a', 'json');
    const excuse = books.excuse('broken', ['refused'], 1);
    const other = books.begin(0, 'm', 'b', 'json');
    const cut = books.begin(1, 'm', 'c', 'json');
    const allowed = books.begin(1, 'm', 'd', 'json');
    books.end(early, UNAVAILABLE);
    books.end(other, UNAVAILABLE);
    books.end(cut, { kind: 'cut' });
    books.over(excuse);
    books.end(allowed, UNAVAILABLE);
    const late = books.begin(1, 'm', 'e', 'json');
    // The clock must have moved on for a request to be later than the end of an excuse.
    excuse.untilMs = late.sentAtMs - 0.001;
    books.end(late, UNAVAILABLE);
    expect(books.breaches.map((text) => text.split(' ')[2])).toEqual(['b', 'c', 'e']);
    expect([...books.excused.values()]).toEqual([2]);
  });

  it('excuse one request that a port which closes in good order never saw, and all where everything is cut', () => {
    const books = new Books(1000);
    const restarted = books.excuse('restarted', ['refused', 'unseen'], 0);
    books.excuse('killed', ['cut'], 1);
    const ends = [0, 0, 1, 1, 1].map((gateway, i) => [books.begin(gateway, 'm', `q${i}`, 'json'), i === 4 ? 'cut' : 'unseen'] as const);
    for (const [request, kind] of ends) books.end(request, { kind });
    expect(books.breaches.map((text) => text.split(' ')[2])).toEqual(['q1']);
    expect(restarted.unseen).toBe(1);
  });

  it('excuse no error that is not about being available', () => {
    const books = new Books(1000);
    books.excuse('broken', ['refused']);
    books.end(books.begin(0, 'm', 'a', 'json'), { kind: 'refused', code: 'HTTP 404', text: 'unknown model' });
    expect(books.breaches).toEqual([expect.stringContaining('HTTP 404: unknown model (broken)')]);
  });

  it('call a right answer that is late a breach, unless its gateway was not let run', () => {
    const books = new Books(-1001);
    books.end(books.begin(0, 'm', 'a', 'json'), { kind: 'right' });
    expect(books.breaches).toEqual([expect.stringContaining('later than')]);
    const request = books.begin(1, 'm', 'b', 'json');
    books.standstill(1);
    expect(books.limitMs(request, request.sentAtMs + 5000)).toBeCloseTo(-1 + 5000, 0);
    expect(books.limitMs(books.begin(0, 'm', 'c', 'json'), performance.now() + 5000)).toBe(-1);
  });
});
