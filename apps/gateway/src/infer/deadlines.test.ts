/** The heap against a sorted list, with members leaving from anywhere. */
import { expect, test } from '@jest/globals';
import { Deadlines, type Due } from './deadlines.js';

const SEED = 20_261_130;

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

test(`the first is always the soonest (seed ${SEED})`, () => {
  const next = random(SEED);
  const heap = new Deadlines<Due>();
  const members: Due[] = [];
  for (let step = 0; step < 20_000; step++) {
    if (members.length === 0 || next() < 0.52) {
      const member: Due = { dueUs: Math.floor(next() * 1000), place: -1 };
      members.push(member);
      heap.add(member);
    } else {
      const [gone] = next() < 0.5 ? [heap.first as Due] : members.slice(Math.floor(next() * members.length));
      members.splice(members.indexOf(gone as Due), 1);
      heap.remove(gone as Due);
      expect((gone as Due).place).toBe(-1);
    }
    expect(heap.size).toBe(members.length);
    if (step % 50 === 0) expect(heap.first?.dueUs).toBe(members.length === 0 ? undefined : Math.min(...members.map((m) => m.dueUs)));
  }
});

test('removing a stranger changes nothing', () => {
  const heap = new Deadlines<Due>();
  const a: Due = { dueUs: 1, place: -1 };
  heap.add(a);
  heap.remove({ dueUs: 0, place: -1 });
  expect(heap.first).toBe(a);
});
