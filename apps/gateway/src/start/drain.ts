/**
 * The end of a server in good order: not ready, still serving; then refusing what is new while what was accepted is
 * finished; then closed. Invariant: a request whose bytes reached the server on an open connection is answered, with a
 * result or a refusal; connections without a request are closed only after they had the time to say otherwise.
 */
import type { Clock } from '@paceline/clock';

/** What drains. */
export interface Draining {
  /** Says not ready from now on. */
  announce(): void;
  /** Refuses new requests from now on; resolves when those accepted are answered. */
  refuse(): Promise<void>;
  /** Requests accepted and not answered. */
  readonly unanswered: number;
  readonly connectionCount: number;
  /** Closes everything within `graceMs` milliseconds. @returns connections that were cut with a request under way */
  close(graceMs: number): Promise<number>;
}

export interface DrainTimes {
  /** For the whole. */
  readonly limitMs: number;
  /** Not ready but serving. */
  readonly delayMs: number;
  /** Connections without a request stay open for so long after new requests are refused. */
  readonly lameDuckMs: number;
}

/** How often the end of the last connection is looked for. */
const LOOK_MS = 10;
/** How long closing may take once the requests are answered, and once they are given up. */
const CLOSE_MS = 5000;
const GIVE_UP_MS = 1000;

/** @returns requests and connections that were dropped because the time was over */
export async function drain(server: Draining, { limitMs, delayMs, lameDuckMs }: DrainTimes, clock: Clock): Promise<number> {
  const untilUs = clock.nowUs() + limitMs * 1000;
  const leftMs = (): number => Math.max(0, (untilUs - clock.nowUs()) / 1000);
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(ms * 1000, resolve));
  const within = (ms: number, work: Promise<unknown>): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = clock.setTimer(ms * 1000, resolve);
      work.then(() => {
        timer.cancel();
        resolve();
      }, reject);
    });

  server.announce();
  if (delayMs > 0) await pause(Math.min(delayMs, limitMs));
  const answered = server.refuse();
  const duckUs = clock.nowUs() + Math.min(lameDuckMs, leftMs()) * 1000;
  while (server.connectionCount > 0 && clock.nowUs() < duckUs) await pause(Math.min(LOOK_MS, (duckUs - clock.nowUs()) / 1000));
  await within(leftMs(), answered);
  const dropped = server.unanswered;
  const graceMs = dropped > 0 ? 0 : leftMs();
  let cut = 0;
  await within(
    dropped > 0 ? GIVE_UP_MS : graceMs + CLOSE_MS,
    server.close(graceMs).then((count) => (cut = count)),
  );
  return Math.max(dropped, cut);
}
