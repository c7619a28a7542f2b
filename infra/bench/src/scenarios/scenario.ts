/** What every scenario gets and gives. */
import type { Generator } from '../generators/generator.js';
import type { LoadSample } from '../measure/load-sample.js';
import type { BenchOptions, ScenarioName } from '../options.js';
import type { Figure } from '../report/figures.js';
import type { LimitSample } from '../targets/limit.js';

export interface Rig {
  readonly options: BenchOptions;
  readonly generator: Generator;
  /** One line of progress. */
  readonly say: (line: string) => void;
}

export interface LimitRound {
  readonly round: number;
  /** One for each batch size tried. */
  readonly sizes: readonly LimitSample[];
}

/** A point of a latency-against-rate curve. */
export interface RatePoint extends LoadSample {
  readonly offeredPerS: number;
}

export interface ScenarioResult {
  readonly scenario: ScenarioName;
  readonly figures: readonly Figure[];
  readonly samples: readonly LoadSample[];
  readonly limits: readonly LimitRound[];
  readonly points: readonly RatePoint[];
  /** Further facts for the reader, one a line. */
  readonly notes: readonly string[];
}

export type Scenario = (rig: Rig) => Promise<ScenarioResult>;

/** A result with nothing in it but what is given. */
export function scenarioResult(scenario: ScenarioName, parts: Partial<ScenarioResult>): ScenarioResult {
  return { scenario, figures: [], samples: [], limits: [], points: [], notes: [], ...parts };
}
