/** Single requests beside a load: for measuring when answers come again after something broke. */
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchModel } from '../models/catalog.js';
import { httpBody, inferPath } from './http-request.js';

const NEXT_AFTER_MS = 20;
const GIVE_UP_MS = 20_000;

/** @throws Error with the server's text for an answer that is not a success. */
export async function ask(httpPort: number, model: BenchModel): Promise<void> {
  const { bytes, headers } = httpBody(model, 0, 'binary');
  const url = `http://127.0.0.1:${httpPort}${inferPath(model.name)}`;
  const answer = await fetch(url, { method: 'POST', headers, body: new Uint8Array(bytes) });
  if (!answer.ok) throw new Error(`HTTP ${answer.status} to a single request: ${await answer.text()}`);
  await answer.arrayBuffer();
}

/**
 * Sends requests until one of them has its answer: any of them may have been given to something that stands still.
 * @returns the others, which are answered once that goes on
 */
export async function firstAnswer(httpPort: number, model: BenchModel): Promise<{ readonly rest: Promise<unknown> }> {
  const asked: Promise<void>[] = [];
  let answered = false;
  while (!answered) {
    asked.push(
      ask(httpPort, model).then(() => {
        answered = true;
      }),
    );
    await Promise.race([delay(NEXT_AFTER_MS), ...asked]);
    if (asked.length * NEXT_AFTER_MS > GIVE_UP_MS) throw new Error(`no answer within ${GIVE_UP_MS} ms after a process was killed`);
  }
  return { rest: Promise.all(asked) };
}
