/**
 * The parameters of a simulated accelerator (`backend: "simulated"`): what it takes for a batch, and how it fails. One
 * table says of each parameter what it means and what it may be; reading, refusing and documenting all go by it, so that
 * they cannot disagree. Such a model has no file: its tensors are what the configuration says.
 */
import type { ModelConfig } from '@paceline/protocol/model-config';
import { SIMULATED_BACKEND } from './backend.js';
import type { ConfigWarning, IssueList } from './issue.js';

/** What a simulated accelerator does. Rates are fractions of executions, 0 to 1. */
export interface SimulatedAccelerator {
  /** Time of an execution whatever its size, and per row on top; milliseconds, fractions count. */
  readonly alphaMs: number;
  readonly betaMs: number;
  /** Each execution takes between (1 - jitter) and (1 + jitter) times that, evenly spread; 0 to 1. */
  readonly jitter: number;
  /** Start of the pseudo-random numbers; undefined = another at each load. */
  readonly seed: number | undefined;
  /** Memory that an instance is said to take beside its process. None is allocated. */
  readonly memoryBytes: number;
  readonly failureRate: number;
  readonly crashRate: number;
  readonly hangRate: number;
}

interface Parameter {
  readonly meaning: string;
  readonly fallback: string;
  readonly most: number;
  /** Whether fractions are allowed. */
  readonly fraction: boolean;
  readonly unit: string;
}

const rate = (meaning: string): Parameter => ({ meaning, fallback: '0', most: 1, fraction: true, unit: '' });
const time = (meaning: string): Parameter => ({ meaning, fallback: '0', most: 3_600_000, fraction: true, unit: 'milliseconds ' });

/** Every parameter by its name in the configuration; none is below 0. */
export const SIMULATED_PARAMETERS = {
  simulated_alpha_ms: time('time of an execution, whatever its size'),
  simulated_beta_ms: time('further time for each row of the batch'),
  simulated_jitter: rate('each execution takes between 1 - jitter and 1 + jitter times that, evenly spread'),
  simulated_seed: {
    meaning: 'start of the pseudo-random numbers; with it, loading the model again repeats them',
    fallback: 'another at each load',
    most: 4_294_967_295,
    fraction: false,
    unit: '',
  },
  simulated_memory_mb: {
    meaning: 'memory that each instance reports beside that of its process; none is allocated',
    fallback: '0',
    most: 1_048_576,
    fraction: true,
    unit: 'megabytes (of 1,048,576 bytes) ',
  },
  simulated_failure_rate: rate('fraction of executions that end in a model error, after their time'),
  simulated_crash_rate: rate('fraction of executions that kill the process of the instance, after half their time'),
  simulated_hang_rate: rate('fraction of executions that never end, until the watchdog ends the process'),
} satisfies Readonly<Record<string, Parameter>>;

export type SimulatedParameter = keyof typeof SIMULATED_PARAMETERS;

const PREFIX = 'simulated_';

function isParameter(key: string): key is SimulatedParameter {
  return Object.hasOwn(SIMULATED_PARAMETERS, key);
}

/** The range of a parameter in words, e.g. `a number of milliseconds from 0 to 3600000`. */
export function simulatedRange(key: SimulatedParameter): string {
  const { fraction, unit, most } = SIMULATED_PARAMETERS[key];
  return `a ${fraction ? '' : 'whole '}number ${unit === '' ? '' : `of ${unit}`}from 0 to ${most}`;
}

/** undefined where it is not set or says nothing. */
function read(config: ModelConfig, key: SimulatedParameter): number | undefined {
  const text = config.parameters[key]?.stringValue.trim();
  const { fraction, most } = SIMULATED_PARAMETERS[key];
  if (text === undefined || !(fraction ? /^\d+(\.\d+)?$/ : /^\d+$/).test(text)) return undefined;
  const value = Number(text);
  return value <= most ? value : undefined;
}

/** @param config free of issues; parameters that {@link checkSimulated} refuses count as not set */
export function simulatedAccelerator(config: ModelConfig): SimulatedAccelerator | undefined {
  if (config.backend !== SIMULATED_BACKEND) return undefined;
  const get = (key: SimulatedParameter): number => read(config, key) ?? 0;
  return {
    alphaMs: get('simulated_alpha_ms'),
    betaMs: get('simulated_beta_ms'),
    jitter: get('simulated_jitter'),
    seed: read(config, 'simulated_seed'),
    memoryBytes: Math.round(get('simulated_memory_mb') * 1024 * 1024),
    failureRate: get('simulated_failure_rate'),
    crashRate: get('simulated_crash_rate'),
    hangRate: get('simulated_hang_rate'),
  };
}

/** Refuses values out of range and names that do not exist; @returns a warning for each that no simulation reads */
export function checkSimulated(config: ModelConfig, issues: IssueList): ConfigWarning[] {
  const simulated = config.backend === SIMULATED_BACKEND;
  const warnings: ConfigWarning[] = [];
  for (const key of Object.keys(config.parameters).filter((name) => name.startsWith(PREFIX))) {
    const path = `parameters["${key}"]`;
    if (!simulated) {
      warnings.push({
        path,
        message: `parameter '${key}' of model '${config.name}' is not used, because its backend is not '${SIMULATED_BACKEND}'`,
      });
    } else if (!isParameter(key)) {
      issues.add(path, `unexpected parameter '${key}' of model '${config.name}'`,
        `the simulated accelerator knows ${Object.keys(SIMULATED_PARAMETERS).join(', ')}`); // prettier-ignore
    } else if (read(config, key) === undefined) {
      issues.add(path,
        `parameter '${key}' of model '${config.name}' must be ${simulatedRange(key)}, got '${config.parameters[key]?.stringValue}'`); // prettier-ignore
    }
  }
  return warnings;
}

/** What a model file would have told: a simulated model needs its tensors written down. */
export function checkSimulatedTensors(config: ModelConfig, issues: IssueList): void {
  for (const direction of ['input', 'output'] as const) {
    if (config[direction].length > 0) continue;
    issues.add(direction, `must specify at least one '${direction}' for model '${config.name}'`,
      `a model of the backend ${SIMULATED_BACKEND} has no file that would tell`); // prettier-ignore
  }
}
