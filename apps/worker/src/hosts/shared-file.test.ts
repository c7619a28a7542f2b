/** Copies of the shared file: by this thread and by the thread pool they are the same, and closing waits for the pool. */
import { fstatSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { inputRegion, outputRegion, REGION_BYTES } from '../host-protocol/shared-memory.js';
import { SharedFile } from './shared-file.js';

const SLOT = 0;
/** Whose outputs are the inputs of {@link SLOT}: regions lie side by side, so that a test reads back what it wrote. */
const BEFORE = SLOT - 0.5;

let file: SharedFile;
beforeEach(() => {
  file = SharedFile.create(tmpdir())!;
});
afterEach(() => file.close());

function parts(count: number, bytes: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => Buffer.alloc(bytes, i + 1));
}

test('a copy by the pool is the copy that this thread makes', async () => {
  // More parts than one system call takes, in uneven sizes.
  const pieces = parts(3000, 4099);
  const total = 3000 * 4099;
  expect(await file.writeLargeInputs(SLOT, pieces, total)).toBe(true);
  expect(outputRegion(BEFORE)).toBe(inputRegion(SLOT));
  const other = await file.readLargeOutputs(BEFORE, total);
  expect(other.equals(Buffer.concat(pieces))).toBe(true);
  expect(file.readOutputs(BEFORE, total).equals(other)).toBe(true);
});

test('what does not fit is not written', async () => {
  expect(await file.writeLargeInputs(SLOT, [], REGION_BYTES + 1)).toBe(false);
});

test('outputs that are not there are an error', async () => {
  await expect(file.readLargeOutputs(5, 10_000_000)).rejects.toThrow('ends at byte 0 of 10000000');
});

test('the descriptor stays open until the last copy is made', async () => {
  const mine = SharedFile.create(tmpdir())!;
  const copy = mine.writeLargeInputs(SLOT, parts(1, 20_000_000), 20_000_000);
  mine.close();
  mine.trim();
  expect(() => fstatSync(mine.fd)).not.toThrow();
  expect(await copy).toBe(true);
  await new Promise((resolve) => setImmediate(resolve));
  expect(() => fstatSync(mine.fd)).toThrow('EBADF');
  expect(await mine.writeLargeInputs(SLOT, parts(1, 10), 10)).toBe(false);
});
