/** How much of what ONNX Runtime can do on one core arrives at 64 connections, and what batching is worth. */
import { MLP, MLP_INT8, MLP_UNBATCHED, OCR_DIRECTION, type BenchModel } from '../models/catalog.js';
import { modelFile, writeRepository } from '../models/repository.js';
import { checkAnswers } from '../measure/answer-check.js';
import type { LoadSubject } from '../measure/load-sample.js';
import type { ScenarioName } from '../options.js';
import { ratios, type Figure } from '../report/figures.js';
import { Limit } from '../targets/limit.js';
import { startPaceline } from '../targets/paceline.target.js';
import { bestLimits, cpuShareNote, interleavedRounds, ratesOf } from './rounds.js';
import { scenarioResult, type Rig, type Scenario, type ScenarioResult } from './scenario.js';

interface LimitTargets {
  readonly model: BenchModel;
  /** The same model without batching, where the gain is to be shown. */
  readonly unbatched?: BenchModel;
  readonly shareOfLimit: number;
  readonly gain?: number;
}

async function againstLimit(rig: Rig, scenario: ScenarioName, targets: LimitTargets): Promise<ScenarioResult> {
  const { model, unbatched } = targets;
  const { serverCore, serverEntry, connections, warmupMs, measureMs } = rig.options;
  const models = unbatched === undefined ? [model] : [model, unbatched];
  const repository = writeRepository(scenario, models);
  const server = await startPaceline({ entry: serverEntry, core: serverCore, repository });
  const limit = Limit.start(serverCore, model, modelFile(scenario, model));
  try {
    for (const served of models) await checkAnswers(server, served, 'binary', limit);
    const subjects = models.map<LoadSubject>(({ name }) => ({
      series: name,
      target: server,
      plan: { kind: 'http-closed', form: 'binary', model: name, port: server.httpPort, connections, warmupMs, measureMs },
    }));
    const { samples, limits } = await interleavedRounds(rig, subjects, limit);
    const rates = ratesOf(samples, model.name);
    const figures: Figure[] = [
      {
        scenario,
        what: 'share of the in-process limit',
        unit: '',
        goal: { atLeast: targets.shareOfLimit },
        values: ratios(rates, bestLimits(limits)),
      },
    ];
    if (unbatched !== undefined && targets.gain !== undefined) {
      const values = ratios(rates, ratesOf(samples, unbatched.name));
      figures.push({ scenario, what: 'rate over its own at max_batch_size 1', unit: 'x', goal: { atLeast: targets.gain }, values });
    }
    const leastCpu = limits.map(({ sizes }) => Math.min(...sizes.map((size) => size.cpuSecondsPer1000)));
    return scenarioResult(scenario, { figures, samples, limits, notes: [cpuShareNote(samples, model.name, leastCpu)] });
  } finally {
    await limit.stop();
    await server.stop();
  }
}

export const mlpScenario: Scenario = (rig) =>
  againstLimit(rig, 'mlp', { model: MLP, unbatched: MLP_UNBATCHED, shareOfLimit: 0.75, gain: 8 });
export const int8Scenario: Scenario = (rig) => againstLimit(rig, 'int8', { model: MLP_INT8, shareOfLimit: 0.62 });
export const ocrScenario: Scenario = (rig) => againstLimit(rig, 'ocr', { model: OCR_DIRECTION, shareOfLimit: 0.75 });
