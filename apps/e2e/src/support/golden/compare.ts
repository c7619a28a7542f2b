/**
 * What differs between a recorded answer and an actual one. Floats are equal within 1e-6 of each other, everything else
 * exactly; what a recording ignores, and the order it calls meaningless, do not count.
 */
import type { Answer, Json, Step } from './recording.js';

const RELATIVE_TOLERANCE = 1e-6;
const ABSOLUTE_TOLERANCE = 1e-9;

function source(path: string): string {
  return path
    .replace(/[\\^$+?()|{}[\]*.]/g, '\\$&')
    .replaceAll('\\[\\*\\]', '\\[\\d+\\]')
    .replaceAll('\\.\\*', '\\.[^.[]+');
}

interface Rules {
  readonly ignored: readonly RegExp[];
  readonly unordered: readonly RegExp[];
}

const isObject = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);

const asText = (value: Json | undefined): string =>
  JSON.stringify(value, (_key, v: unknown) => (typeof v === 'bigint' ? v.toString() : v)) ?? 'nothing';

const show = (value: Json | undefined): string => asText(value).slice(0, 300);

const inOrder = (list: readonly Json[]): readonly Json[] => [...list].sort((x, y) => (asText(x) < asText(y) ? -1 : 1));

function numbersEqual(expected: number, actual: number): boolean {
  if (Number.isInteger(expected) && Number.isInteger(actual)) return expected === actual;
  const difference = Math.abs(expected - actual);
  return difference <= ABSOLUTE_TOLERANCE || difference <= RELATIVE_TOLERANCE * Math.max(Math.abs(expected), Math.abs(actual));
}

function diff(expected: Json | undefined, actual: Json | undefined, path: string, rules: Rules, out: string[]): void {
  if (rules.ignored.some((p) => p.test(path))) return;
  if (isList(expected) && isList(actual)) {
    const sorted = rules.unordered.some((p) => p.test(path));
    const [e, a] = sorted ? [inOrder(expected), inOrder(actual)] : [expected, actual];
    if (e.length !== a.length) out.push(`${path}: expected ${e.length} items, got ${a.length}`);
    for (let i = 0; i < Math.min(e.length, a.length); i++) diff(e[i], a[i], `${path}[${i}]`, rules, out);
  } else if (expected !== undefined && actual !== undefined && isObject(expected) && isObject(actual)) {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      diff(expected[key], actual[key], `${path}.${key}`, rules, out);
    }
  } else {
    const same = typeof expected === 'number' && typeof actual === 'number' ? numbersEqual(expected, actual) : expected === actual;
    if (!same) out.push(`${path}: expected ${show(expected)}, got ${show(actual)}`);
  }
}

/** The models that a recording names, out of a repository index. */
function pick(body: Json, names: readonly string[]): Json {
  const keep = (list: readonly Json[]): readonly Json[] => list.filter((m) => isObject(m) && names.includes(m['name'] as string));
  if (isList(body)) return keep(body);
  if (!isObject(body) || !isList(body['models'])) return body;
  const { models, ...rest } = body;
  const kept = isList(models) ? keep(models) : [];
  return kept.length === 0 ? rest : { ...rest, models: kept };
}

/** An answer cut down to what the recording looks at. */
export function cutDown({ pickNames }: Pick<Step, 'pickNames'>, answer: Answer): Answer {
  if (pickNames === undefined) return answer;
  if ('code' in answer) return answer.message === undefined ? answer : { ...answer, message: pick(answer.message, pickNames) };
  return answer.json === undefined ? answer : { ...answer, json: pick(answer.json, pickNames) };
}

/** The body that the paths of a recording start from. */
function bodyOf(answer: Answer): Json | undefined {
  return 'code' in answer ? (answer.message ?? answer.messages) : answer.json;
}

/**
 * What Paceline says of a model beyond what was recorded, measured anew at each run: its own member of the statistics, and
 * the memory of instances, which Triton's ONNX backend does not report.
 */
const MEASURED = ['paceline', 'memory_usage'].map((member) => `$.model_stats[*].${member}`);

const BODIES = new Set(['json', 'message', 'messages']);

/** @returns one line per difference; none = the answers are the same */
export function differences(step: Pick<Step, 'ignore' | 'unordered'>, expected: Answer, actual: Answer): readonly string[] {
  const rules: Rules = {
    ignored: [...(step.ignore ?? []), ...MEASURED].map((p) => new RegExp(`^${source(p)}(?=$|[.[])`)),
    unordered: (step.unordered ?? []).map((p) => new RegExp(`^${source(p)}$`)),
  };
  const out: string[] = [];
  for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    if (BODIES.has(key)) continue;
    const [e, a] = [expected, actual].map((answer) => (answer as unknown as Record<string, Json>)[key]);
    if (e !== a && !rules.ignored.some((p) => p.test(`$${key}`))) out.push(`${key}: expected ${show(e)}, got ${show(a)}`);
  }
  diff(bodyOf(expected), bodyOf(actual), '$', rules, out);
  return out;
}
