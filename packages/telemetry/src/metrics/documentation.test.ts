/** The page of the metrics says of each family what the registry says, and lists no other. */
import { beforeAll, expect, test } from '@jest/globals';
import { codeOf, readPage, tablesOf } from '@paceline/testkit';
import { RELEASE_REASONS, StatisticsRegistry } from '../statistics.js';
import { createMetrics } from './metrics.js';

interface Family {
  readonly type: string;
  readonly labels: string;
}

/** Everything switched on, and something to show in each family that needs it. */
async function exported(): Promise<Map<string, Family>> {
  const statistics = new StatisticsRegistry();
  const metrics = createMetrics({
    statistics,
    processMetrics: true,
    latencies: { counters: true, summaryQuantiles: [0.5] },
    server: { connections: () => ({ http: 0 }), bufferedBytes: () => 0, accessLog: { writtenLines: 0, droppedLines: 0 } },
  });
  const s = statistics.forVersion('m', '1');
  const stages = { computeInputNs: 1, computeInferNs: 1, computeOutputNs: 1 };
  s.recordExecution({ rows: 1, reason: RELEASE_REASONS[0], ...stages }, 1);
  s.recordStages({ queueNs: 1, ...stages });
  s.recordSuccess(1);
  s.recordFailure('OTHER', 1, 'request_timeout');
  s.recordRefusal('queue_full');
  s.recordRestart('hung');
  statistics.instanceMemory = () => [{ model: 'm', version: '1', instance: 'm_0', residentBytes: 1 }];
  const families = new Map<string, Family>();
  let name = '';
  for (const line of (await metrics.render()).split('\n')) {
    const [, family, type] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? [];
    if (family !== undefined && type !== undefined) families.set((name = family), { type, labels: '' });
    const found = /^\w+\{(.*)\} /.exec(line)?.[1];
    if (found === undefined || families.get(name)!.labels !== '') continue;
    const labels = [...found.matchAll(/(\w+)="/g)].map(([, label]) => label).filter((label) => label !== 'le' && label !== 'quantile');
    families.set(name, { type: families.get(name)!.type, labels: labels.join(', ') });
  }
  return families;
}

/** Whose families are compared by the tests of those processes. */
const ELSEWHERE = new Set(['The gateway of a cluster', 'The scheduler of a cluster']);

let page: Map<string, Family>;
let registry: Map<string, Family>;
beforeAll(async () => {
  const tables = tablesOf(readPage('observability.md')).filter(({ heading }) => !ELSEWHERE.has(heading));
  page = new Map(
    tables
      .flatMap(({ rows }) => rows)
      .flatMap(({ name = '', type = '', labels = '', unit = '', meaning = '' }) => {
        const [family] = codeOf(name);
        if (family === undefined) return [];
        if ([type, unit, meaning].includes('')) throw new Error(`a type, unit or meaning is missing for ${family}`);
        return [[family, { type, labels }] as const];
      }),
  );
  registry = await exported();
});

test('every family of the registry is on the page, with its type', () => {
  const types = (families: Map<string, Family>): unknown => Object.fromEntries([...families].map(([name, { type }]) => [name, type]));
  expect(types(page)).toMatchObject(types(registry) as object);
});

test('every family on the page is in the registry', () => {
  expect([...page.keys()].filter((name) => !registry.has(name))).toEqual([]);
});

test('labels are those of the series', () => {
  // Others have no series here: nothing of the kind happened in this process.
  const shown = [...registry].filter(([, { labels }]) => labels !== '');
  expect(shown.length).toBeGreaterThan(30);
  for (const [name, { labels }] of shown) expect([name, page.get(name)?.labels]).toEqual([name, labels]);
});
