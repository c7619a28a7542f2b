/**
 * A cluster answers as the embedded server does: the exchanges recorded from Triton, sent to a gateway of a cluster, and
 * the example models asked the same of both, bit for bit.
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import { startCluster, type ClusterProcess } from './support/cluster-process.js';
import { Draw } from './support/draw.js';
import { readAccepted, readRecordings, type Step } from './support/golden/recording.js';
import { replay, type StepOutcome } from './support/golden/replay.js';
import { GrpcInfer, type RawInput } from './support/grpc-infer.js';
import { startServer, type ServerProcess } from './support/server-process.js';

const folder = (name: string): string => fileURLToPath(new URL(`golden/${name}`, import.meta.url));
const EXAMPLES = fileURLToPath(new URL('../../server/example-models', import.meta.url));
const MODELS = `--model-repository=${folder('models')}`;
const BROKEN = `--model-repository=${folder('broken-models')}`;
const EXPLICIT = '--model-control-mode=explicit';
const LIMIT_MS = 180_000;

let cluster: ClusterProcess | undefined;
let embedded: ServerProcess | undefined;
afterEach(async () => {
  await cluster?.stop('SIGKILL');
  await embedded?.stop('SIGKILL');
  cluster = embedded = undefined;
});

/** What executions took is told to gateways once a second. */
const late = {
  is: (step: Step) => ('http' in step ? step.http.path.endsWith('/stats') : step.grpc.method.endsWith('/ModelStatistics')),
  limitMs: 5000,
};
/** Which device a group without a kind gets, and how many instances, each worker decides for itself. */
const BY_WORKER = /^\$\.(config\.)?instance_group\[0\]\.(kind|count): expected ("KIND_CPU"|2), got ("KIND_AUTO"|0|nothing)$/;

function report({ recording, step, failures, answer }: StepOutcome): string {
  const shown = JSON.stringify(answer, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
  return [`${recording.id} step ${step} (${recording.group}: ${recording.note})`, ...failures, `answered ${shown.slice(0, 600)}`].join(
    '\n  ',
  );
}

describe('exchanges recorded from Triton, sent to a cluster', () => {
  it.each([
    ['main', 629, [MODELS]],
    ['explicit', 375, [MODELS, BROKEN, EXPLICIT, '--load-model=add_sub', '--load-model=scale_all']],
  ] as const)(
    'run %s',
    async (name, steps, flags) => {
      const uploads = mkdtempSync(join(tmpdir(), 'paceline-e2e-uploads-'));
      const counts = ['--gateways=1', '--schedulers=1', '--workers=1'];
      cluster = await startCluster(['--id=triton', `--model-upload-directory=${uploads}`, ...counts, ...flags]);
      const target = { http: cluster.http[0] ?? '', grpc: cluster.grpc[0] ?? '' };
      const all = await replay(readRecordings(name), readAccepted(name), target, { late });
      const failed = all.filter(({ failures }) => failures.some((failure) => !BY_WORKER.test(failure)));
      expect(failed.map(report).join('\n')).toBe('');
      expect(all).toHaveLength(steps);
      rmSync(uploads, { recursive: true });
    },
    LIMIT_MS,
  );
});

describe('the example models', () => {
  it(
    'answer the same bytes as from the embedded server, over HTTP and gRPC, from each gateway',
    async () => {
      embedded = await startServer([`--model-repository=${EXAMPLES}`]);
      cluster = await startCluster([`--model-repository=${EXAMPLES}`, '--gateways=2', '--schedulers=2', '--workers=2']);
      const seed = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
      console.log(`CHAOS_SEED=${seed}`);
      const draw = new Draw(seed);
      const names = (await indexOf(embedded.http)).map(({ name }) => name);
      expect(names).toEqual(Object.keys(INPUTS));
      for (const name of names) {
        const metadata = await textOf(embedded.http, `models/${name}`);
        for (const gateway of cluster.http) expect(await textOf(gateway, `models/${name}`)).toBe(metadata);
        for (let round = 0; round < 3; round++) {
          const inputs = inputsFor(name, draw);
          const expected = await ask(embedded.grpc, name, inputs);
          for (const gateway of cluster.grpc) expect(await ask(gateway, name, inputs)).toEqual(expected);
          const text = await post(embedded.http, name, inputs);
          for (const gateway of cluster.http) expect(await post(gateway, name, inputs)).toBe(text);
        }
      }
      expect(await indexOf(cluster.http[1] ?? '')).toEqual(await indexOf(embedded.http));
    },
    LIMIT_MS,
  );
});

/** Shapes of one request of each example model; a scalar INT64 is the sampling rate. */
const INPUTS: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  breast_cancer: { features: [2, 30] },
  digits: { pixels: [3, 8, 8] },
  ocr_direction: { x: [1, 3, 48, 192] },
  ocr_recognition: { x: [1, 3, 48, 96] },
  silero_vad: { input: [1, 576], state: [2, 1, 128], sr: [1] },
};

function inputsFor(model: string, draw: Draw): readonly RawInput[] {
  return Object.entries(INPUTS[model] ?? {}).map(([name, shape]) => {
    if (name === 'sr') return { name, datatype: 'INT64', shape, data: Buffer.from(BigInt64Array.of(16_000n).buffer) };
    const count = shape.reduce((product, size) => product * size, 1);
    const values = Float32Array.from({ length: count }, () => 2 * draw.unit() - 1);
    return { name, datatype: 'FP32', shape, data: Buffer.from(values.buffer) };
  });
}

async function indexOf(http: string): Promise<readonly { readonly name: string }[]> {
  const answer = await fetch(`http://${http}/v2/repository/index`, { method: 'POST' });
  return (await answer.json()) as readonly { readonly name: string }[];
}

async function textOf(http: string, path: string): Promise<string> {
  return (await fetch(`http://${http}/v2/${path}`)).text();
}

async function ask(grpc: string, model: string, inputs: readonly RawInput[]): Promise<unknown> {
  const client = new GrpcInfer(grpc);
  try {
    const { outputs } = await client.infer(model, 'same', inputs);
    return outputs.map(({ name, shape, data }) => ({ name, shape, data: data.toString('base64') }));
  } finally {
    client.close();
  }
}

async function post(http: string, model: string, inputs: readonly RawInput[]): Promise<string> {
  const body = JSON.stringify({
    id: 'same',
    inputs: inputs.map(({ data, ...rest }) => ({ ...rest, data: numbersOf(rest.datatype, data) })),
  });
  const answer = await fetch(`http://${http}/v2/models/${model}/infer`, { method: 'POST', body });
  return `${answer.status} ${await answer.text()}`;
}

function numbersOf(datatype: string, { buffer, byteOffset, byteLength }: Buffer): readonly number[] {
  if (datatype === 'INT64') return [...new BigInt64Array(buffer, byteOffset, byteLength / 8)].map(Number);
  return [...new Float32Array(buffer, byteOffset, byteLength / 4)];
}
