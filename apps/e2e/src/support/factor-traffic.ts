/**
 * Constant requests for a model that multiplies by a factor, over HTTP to several gateways in turn: which factors were
 * seen tells which loads of the model answered.
 */
export interface FactorTraffic {
  /** Factors that answers have shown, in the order in which each was first seen. */
  readonly factors: readonly number[];
  readonly failures: readonly string[];
  /** Resolves with the next answer that shows `factor`. */
  until(factor: number): Promise<void>;
  /** Resolves after so many more answers. */
  more(answers: number): Promise<void>;
  /** Resolves when the last request under way has its answer. */
  stop(): Promise<void>;
}

const BODY = JSON.stringify({ inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 2], data: [1, 2] }] });
const CLIENTS = 2;

/** @param http `host:port` of gateways */
export function startFactorTraffic(http: readonly string[], model: string): FactorTraffic {
  const factors: number[] = [];
  const failures: string[] = [];
  const waiting = new Set<(factor: number) => void>();
  let stopped = false;
  const ask = async (url: string): Promise<void> => {
    const answer = await fetch(url, { method: 'POST', body: BODY });
    const text = await answer.text();
    if (answer.status !== 200) return void failures.push(`${answer.status} ${text}`);
    const [first = 0, second] = (JSON.parse(text) as { outputs: { data: number[] }[] }).outputs[0]!.data;
    if (second !== 2 * first) failures.push(`wrong answer ${text}`);
    if (!factors.includes(first)) factors.push(first);
    for (const each of [...waiting]) each(first);
  };
  const loops = Array.from({ length: CLIENTS }, async (_, client) => {
    const url = `http://${http[client % http.length]}/v2/models/${model}/infer`;
    while (!stopped) await ask(url).catch((error: unknown) => failures.push(String((error as Error).cause ?? error)));
  });
  const when = (holds: (factor: number) => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (factor: number): void => {
        if (!holds(factor)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
    });
  return {
    factors,
    failures,
    until: (factor) => when((seen) => seen === factor),
    more: (answers) => {
      let left = answers;
      return when(() => --left === 0);
    },
    async stop() {
      stopped = true;
      await Promise.all(loops);
    },
  };
}
