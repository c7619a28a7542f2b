/** Where the model is nearly free: how much of a server that infers nothing is left when Paceline serves it. */
import { TINY, TREES, type BenchModel } from '../models/catalog.js';
import { modelFile, writeRepository } from '../models/repository.js';
import { checkAnswers } from '../measure/answer-check.js';
import type { LoadSubject } from '../measure/load-sample.js';
import type { ScenarioName } from '../options.js';
import { ratios, type Figure } from '../report/figures.js';
import { startBareGrpc, startBareHttp } from '../targets/bare.target.js';
import { Limit } from '../targets/limit.js';
import { startPaceline } from '../targets/paceline.target.js';
import type { Target } from '../targets/target.js';
import { cpuShareNote, interleavedRounds, ratesOf } from './rounds.js';
import { scenarioResult, type Rig, type Scenario, type ScenarioResult } from './scenario.js';

interface BareTargets {
  readonly model: BenchModel;
  readonly protocol: 'json' | 'grpc';
  readonly shareOfBare: number;
}

const GRPC_CONNECTIONS = 4;

function subjectOf(rig: Rig, target: Target, { model, protocol }: BareTargets): LoadSubject {
  const { connections, warmupMs, measureMs } = rig.options;
  const base = { model: model.name, warmupMs, measureMs };
  return {
    series: target.name,
    target,
    plan:
      protocol === 'grpc'
        ? { ...base, kind: 'grpc-closed', port: target.grpcPort, connections: GRPC_CONNECTIONS, inFlight: connections }
        : { ...base, kind: 'http-closed', port: target.httpPort, form: 'json', connections },
  };
}

async function againstBare(rig: Rig, scenario: ScenarioName, targets: BareTargets): Promise<ScenarioResult> {
  const { model, protocol } = targets;
  const { serverCore, serverEntry } = rig.options;
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository: writeRepository(scenario, [model]) });
  const bare = await (protocol === 'grpc' ? startBareGrpc(serverCore) : startBareHttp(serverCore, model));
  const limit = Limit.start(serverCore, model, modelFile(scenario, model));
  try {
    await checkAnswers(server, model, protocol, limit);
    await limit.stop();
    const { samples } = await interleavedRounds(rig, [subjectOf(rig, server, targets), subjectOf(rig, bare, targets)]);
    const values = ratios(ratesOf(samples, server.name), ratesOf(samples, bare.name));
    const figures: Figure[] = [{ scenario, what: `share of ${bare.name}`, unit: '', goal: { atLeast: targets.shareOfBare }, values }];
    const bareCpu = samples.filter(({ series }) => series === bare.name).map(({ cpuSecondsPer1000 }) => cpuSecondsPer1000);
    return scenarioResult(scenario, { figures, samples, notes: [cpuShareNote(samples, server.name, bareCpu)] });
  } finally {
    await limit.stop();
    await bare.stop();
    await server.stop();
  }
}

export const tinyScenario: Scenario = (rig) => againstBare(rig, 'tiny', { model: TINY, protocol: 'json', shareOfBare: 0.65 });
export const treesScenario: Scenario = (rig) => againstBare(rig, 'trees', { model: TREES, protocol: 'json', shareOfBare: 0.65 });
export const grpcScenario: Scenario = (rig) => againstBare(rig, 'grpc', { model: TINY, protocol: 'grpc', shareOfBare: 0.6 });
