/**
 * Constant requests whose answers are known, over HTTP to each of several gateways in turn. Invariant: each request is
 * counted once, as answered with its own right result or as a failure with what came instead.
 */
import { performance } from 'node:perf_hooks';

export interface VerifiedLoad {
  readonly answered: number;
  /** What went wrong, one line each. */
  readonly failures: readonly string[];
  /** Of the slowest answer so far, milliseconds. */
  readonly slowestMs: number;
  /** Ends when every request under way has its answer. Idempotent. */
  stop(): Promise<void>;
}

/** INT32 vectors of four, which the model gives back as they are; longer ones go by reference. */
export interface VerifiedLoadOptions {
  readonly model: string;
  /** Requests that are under way at a time. */
  readonly clients: number;
  /** Numbers in a request. */
  readonly numbers?: number;
}

/** @param http `host:port` of gateways */
export function startVerifiedLoad(http: readonly string[], { model, clients, numbers = 4 }: VerifiedLoadOptions): VerifiedLoad {
  const failures: string[] = [];
  let answered = 0;
  let slowestMs = 0;
  let next = 0;
  let stopped = false;
  const ask = async (gateway: string): Promise<void> => {
    const x = next++;
    const data = Array.from({ length: numbers }, (_, i) => x * 31 + i);
    const inputs = [{ name: 'INPUT0', datatype: 'INT32', shape: [1, numbers], data }];
    const sentMs = performance.now();
    try {
      const answer = await fetch(`http://${gateway}/v2/models/${model}/infer`, {
        method: 'POST',
        body: JSON.stringify({ id: String(x), inputs }),
      });
      const text = await answer.text();
      slowestMs = Math.max(slowestMs, performance.now() - sentMs);
      if (answer.status === 200 && isAnswerTo(x, data, text)) answered += 1;
      else failures.push(`request ${x}: HTTP ${answer.status} ${text.slice(0, 300)}`);
    } catch (error) {
      failures.push(`request ${x}: ${String((error as Error).cause ?? error)}`);
    }
  };
  const loops = Array.from({ length: clients }, async (_, client) => {
    while (!stopped) await ask(http[client % http.length] ?? '');
  });
  return {
    get answered() {
      return answered;
    },
    failures,
    get slowestMs() {
      return slowestMs;
    },
    async stop() {
      stopped = true;
      await Promise.all(loops);
    },
  };
}

function isAnswerTo(x: number, data: readonly number[], text: string): boolean {
  const { id, outputs } = JSON.parse(text) as { id?: string; outputs?: { data: number[] }[] };
  return id === String(x) && outputs?.[0]?.data.join() === data.join();
}
