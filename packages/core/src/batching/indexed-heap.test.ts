/** The heap against a sorted list. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { IndexedHeap } from './indexed-heap.js';

test('behaves as a map from handles to keys that knows its smallest key', () => {
  const steps = fc.array(fc.record({ handle: fc.nat(150), key: fc.option(fc.integer({ min: -50, max: 50 }), { freq: 3 }) }), {
    maxLength: 400,
  });
  fc.assert(
    fc.property(steps, (run) => {
      const heap = new IndexedHeap(2);
      const model = new Map<number, number>();
      for (const { handle, key } of run) {
        if (key === null) {
          heap.delete(handle);
          model.delete(handle);
        } else {
          heap.set(handle, key);
          model.set(handle, key);
        }
        expect(heap.size).toBe(model.size);
        expect(heap.minKey).toBe(Math.min(Infinity, ...model.values()));
        if (model.size > 0) expect(model.get(heap.minHandle)).toBe(heap.minKey);
        expect(heap.has(handle)).toBe(model.has(handle));
      }
      while (heap.size > 0) {
        expect(heap.minKey).toBe(Math.min(...model.values()));
        model.delete(heap.minHandle);
        heap.delete(heap.minHandle);
      }
    }),
  );
});
