// What a sender may have on its way is bounded over all transfers, and everybody gets a turn.
import { describe, expect, test } from '@jest/globals';
import { ReceiveBudget } from './receive-budget.js';
import { TransfersIn } from './transfers-in.js';

const TYPE = 0x81;
const FOUR_WINDOWS_BYTES = 2 * 1024 * 1024;

function receiver(budgetBytes: number): { transfers: TransfersIn; credit: Map<number, number>; whole: Buffer[]; refused: number[] } {
  const credit = new Map<number, number>();
  const whole: Buffer[] = [];
  const refused: number[] = [];
  const transfers = new TransfersIn(
    {
      grant: (transfer, bytes) => void credit.set(transfer, (credit.get(transfer) ?? 0) + bytes),
      refuse: (transfer) => void refused.push(transfer),
      onMessage: (_, body) => void whole.push(body),
    },
    new ReceiveBudget(budgetBytes),
  );
  return { transfers, credit, whole, refused };
}

describe('transfers that arrive', () => {
  test('share four windows, and all of them end', () => {
    const { transfers, credit, whole } = receiver(1e9);
    for (let id = 1; id <= 40; id++) transfers.begin(id, TYPE, 700_000 + id);
    let most = 0;
    for (let turn = 0; whole.length < 40; turn++) {
      most = Math.max(
        most,
        [...credit.values()].reduce((a, b) => a + b, 0),
      );
      const open = [...credit].filter(([, bytes]) => bytes > 0);
      expect(open).not.toHaveLength(0);
      const [id, bytes] = open[turn % open.length]!;
      const sent = Math.min(bytes, 64 * 1024);
      credit.set(id, bytes - sent);
      transfers.chunk(id, Buffer.alloc(sent, id));
    }
    expect(most).toBeLessThanOrEqual(FOUR_WINDOWS_BYTES);
    expect(whole.map((body) => body.length).sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => 700_001 + i));
    expect(whole.every((body) => body.every((byte) => byte === body[0]) && body.length === 700_000 + body[0]!)).toBe(true);
  });

  test('one that sends more than it was granted, begins twice or is of no message is an offence', () => {
    const { transfers, credit } = receiver(1e9);
    transfers.begin(1, TYPE, 1_000_000);
    expect(() => transfers.chunk(1, Buffer.alloc(credit.get(1)! + 1))).toThrow('were not granted');
    expect(() => transfers.chunk(2, Buffer.alloc(1))).toThrow('were not granted');
    expect(() => transfers.begin(1, TYPE, 5)).toThrow('begins twice');
    for (const bytes of [0, -1, 0.5, NaN, Infinity]) expect(() => transfers.begin(3, TYPE, bytes)).toThrow('cannot be');
    expect(() => transfers.begin(3, 3, 5)).toThrow('cannot be');
  });

  test('a lost connection frees the budget for those that wait on another', () => {
    const budget = new ReceiveBudget(1000);
    const granted: string[] = [];
    const sink = (name: string): ConstructorParameters<typeof TransfersIn>[0] => ({
      grant: (transfer) => void granted.push(`${name}${transfer}`),
      refuse: () => undefined,
      onMessage: () => undefined,
    });
    const [a, b] = [new TransfersIn(sink('a'), budget), new TransfersIn(sink('b'), budget)];
    a.begin(1, TYPE, 600);
    a.begin(2, TYPE, 600);
    b.begin(1, TYPE, 600);
    expect(granted).toEqual(['a1']);
    a.clear();
    expect(granted).toEqual(['a1', 'b1']);
    expect(budget.usedBytes).toBe(600);
    b.clear();
    expect(budget.usedBytes).toBe(0);
  });
});
