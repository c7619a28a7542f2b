/**
 * A latency objective instead of a delay tuned by hand: the arrivals of a real service (Azure LLM inference trace 2023, see
 * traces/README.md), scaled to 80 % of capacity, once to a model with the objective and once to the same model with a fixed
 * queue delay.
 */
import { MLP_DELAYED, MLP_OBJECTIVE, OBJECTIVE_MS } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import type { LoadSubject } from '../measure/load-sample.js';
import { startPaceline } from '../targets/paceline.target.js';
import { conversationArrivalsMs } from '../trace.js';
import { interleavedRounds } from './rounds.js';
import { scenarioResult, type Scenario } from './scenario.js';

const SHARE_OF_CAPACITY = 0.8;
const MAX_CONNECTIONS = 512;

export const objectiveScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry, connections, warmupMs, measureMs, quick, seed } = rig.options;
  const models = [MLP_OBJECTIVE, MLP_DELAYED];
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository: writeRepository('objective', models) });
  try {
    const base = { form: 'binary', port: server.httpPort, warmupMs } as const;
    const capacity: number[] = [];
    for (const { name: model } of models) {
      const closed = { ...base, kind: 'http-closed', model, connections, measureMs, mayRefuse: true } as const;
      capacity.push((await rig.generator.run(closed, () => undefined)).ratePerS);
    }
    // One rate for both, which both can carry.
    const ratePerS = Math.min(...capacity) * SHARE_OF_CAPACITY;
    const wholeTraceMs = (conversationArrivalsMs().length * 1000) / ratePerS;
    const subjects = models.map<LoadSubject>(({ name: model }) => ({
      series: model,
      target: server,
      plan: {
        ...base,
        kind: 'http-open',
        model,
        arrivals: 'conversation-trace',
        ratePerS,
        seed,
        maxConnections: MAX_CONNECTIONS,
        measureMs: quick ? measureMs : wholeTraceMs,
        objectiveMs: OBJECTIVE_MS,
        mayRefuse: true,
      },
    }));
    rig.say(`  capacity ${capacity.map((rate) => rate.toFixed(0)).join(' and ')}/s, the trace at ${ratePerS.toFixed(0)}/s`);
    const { samples } = await interleavedRounds(rig, subjects);
    const shares = (series: string): number[] =>
      samples.filter((sample) => sample.series === series).map((sample) => sample.withinObjective ?? Number.NaN);
    const own = shares(MLP_OBJECTIVE.name);
    const delayed = shares(MLP_DELAYED.name);
    return scenarioResult('objective', {
      samples,
      figures: [
        { scenario: 'objective', what: `answered within ${OBJECTIVE_MS} ms`, unit: '', goal: { atLeast: 0.99 }, values: own },
        {
          scenario: 'objective',
          what: 'the same share above that of a fixed delay of 5 ms',
          unit: '',
          goal: { atLeast: 0 },
          values: own.map((share, i) => share - (delayed[i] ?? Number.NaN)),
        },
      ],
      notes: [`fixed delay of 5 ms: ${delayed.map((share) => share.toFixed(4)).join(', ')} within ${OBJECTIVE_MS} ms`],
    });
  } finally {
    await server.stop();
  }
};
