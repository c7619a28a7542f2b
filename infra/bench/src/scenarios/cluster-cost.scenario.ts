/**
 * What being spread over processes costs: CPU a request over all processes against the embedded server's, and latency of a
 * client that waits for each answer. The model takes no time, so the path is all there is. `cluster-threshold` repeats it
 * for larger tensors that travel through Redis or are pulled, from which the default of --inline-bytes was chosen.
 */
import { INSTANT_16K, INSTANT_4K, INSTANT_600, INSTANT_64K, type BenchModel } from '../models/catalog.js';
import { writeRepository } from '../models/repository.js';
import type { LoadSample, LoadSubject } from '../measure/load-sample.js';
import { ratios, spread, type Figure } from '../report/figures.js';
import { startCluster } from '../targets/cluster.target.js';
import { startPaceline } from '../targets/paceline.target.js';
import type { Target } from '../targets/target.js';
import { interleavedRounds, seriesOf } from './rounds.js';
import { scenarioResult, type Rig, type Scenario } from './scenario.js';

const US_PER_CPU_SECOND_PER_1000 = 1000;
/** The most that travels inline. */
const ALL_INLINE = '--inline-bytes=262144';
const ALL_PULLED = '--inline-bytes=0';

const LARGER: readonly BenchModel[] = [INSTANT_4K, INSTANT_16K, INSTANT_64K];

function subjects(rig: Rig, name: string, target: Target, models: readonly BenchModel[]): LoadSubject[] {
  const { connections, warmupMs, measureMs } = rig.options;
  return models.flatMap((model) =>
    [connections, 1].map((inFlight) => ({
      series: seriesName(name, model, inFlight),
      target,
      plan: {
        kind: 'http-closed',
        form: 'binary',
        model: model.name,
        port: target.httpPort,
        connections: inFlight,
        warmupMs: Math.min(warmupMs, 1000),
        measureMs,
      },
    })),
  );
}

const seriesName = (target: string, model: BenchModel, inFlight: number): string => `${target}, ${model.name}, ${inFlight} in flight`;

const cpuOf = (samples: readonly LoadSample[]): number[] => samples.map(({ cpuSecondsPer1000 }) => cpuSecondsPer1000);
const p50Of = (samples: readonly LoadSample[]): number[] => samples.map(({ latency }) => latency.p50Ms);

/** Who of a cluster spends how much of a request's CPU. */
function partsNote(series: string, samples: readonly LoadSample[]): string {
  const [first] = samples;
  const parts = Object.keys(first?.partCpuSecondsPer1000 ?? {}).map((part) => {
    const us = spread(samples.map((sample) => (sample.partCpuSecondsPer1000?.[part] ?? Number.NaN) * US_PER_CPU_SECOND_PER_1000)).median;
    return `${part} ${us.toFixed(1)}`;
  });
  return `${series}, us of CPU a request: ${parts.join(', ')}`;
}

/** Ratio of CPU and difference of latency between a cluster and the embedded server. */
function compare(samples: readonly LoadSample[], name: string, model: BenchModel, connections: number) {
  const of = (target: string, inFlight: number): LoadSample[] => seriesOf(samples, seriesName(target, model, inFlight));
  const embeddedMs = p50Of(of('embedded', 1));
  return {
    cpu: ratios(cpuOf(of(name, connections)), cpuOf(of('embedded', connections))),
    aboveMs: p50Of(of(name, 1)).map((ms, i) => ms - (embeddedMs[i] ?? Number.NaN)),
    parts: partsNote(seriesName(name, model, connections), of(name, connections)),
  };
}

export const clusterCostScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry, connections } = rig.options;
  const repository = writeRepository('cluster-cost', [INSTANT_600]);
  const embedded = await startPaceline({ entry: serverEntry, core: serverCore, repository });
  const cluster = await startCluster({ cores: serverCore, repository });
  try {
    const all = [...subjects(rig, 'embedded', embedded, [INSTANT_600]), ...subjects(rig, 'cluster', cluster, [INSTANT_600])];
    const { samples } = await interleavedRounds(rig, all);
    const { cpu, aboveMs, parts } = compare(samples, 'cluster', INSTANT_600, connections);
    const figure = (what: string, unit: string, atMost: number, values: number[]): Figure => ({
      scenario: 'cluster-cost',
      what,
      unit,
      goal: { atMost },
      values,
    });
    return scenarioResult('cluster-cost', {
      samples,
      figures: [
        figure(`600 B, ${connections} in flight: CPU a request over all processes, of the embedded server's`, '', 1.8, cpu),
        figure('600 B, 1 connection: median above the embedded server', 'ms', 2.5, aboveMs),
      ],
      notes: [parts],
    });
  } finally {
    await cluster.stop();
    await embedded.stop();
  }
};

export const clusterThresholdScenario: Scenario = async (rig) => {
  const { serverCore, serverEntry, connections } = rig.options;
  const repository = writeRepository('cluster-threshold', LARGER);
  const embedded = await startPaceline({ entry: serverEntry, core: serverCore, repository });
  const inline = await startCluster({ cores: serverCore, repository, flags: [ALL_INLINE] });
  const pulled = await startCluster({ cores: serverCore, repository, flags: [ALL_PULLED] });
  try {
    const { samples } = await interleavedRounds(rig, [
      ...subjects(rig, 'embedded', embedded, LARGER),
      ...subjects(rig, 'inline', inline, LARGER),
      ...subjects(rig, 'pulled', pulled, LARGER),
    ]);
    const notes = LARGER.flatMap((model) =>
      ['inline', 'pulled'].flatMap((name) => {
        const { cpu, aboveMs, parts } = compare(samples, name, model, connections);
        const text = `CPU a request ${spread(cpu).median.toFixed(2)}x the embedded server's, median ${spread(aboveMs).median.toFixed(2)} ms above it`;
        return [`${model.name}, ${name}: ${text}`, `  ${parts}`];
      }),
    );
    return scenarioResult('cluster-threshold', { samples, notes });
  } finally {
    await pulled.stop();
    await inline.stop();
    await embedded.stop();
  }
};
