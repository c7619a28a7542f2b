// The protocol against a real host, without the worker above it.
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { slowModel } from '@paceline/testkit';
import { emptyFrame, FRAME, jsonBody, jsonFrame } from '../host-protocol/frames.js';
import type { LoadMessage } from '../host-protocol/messages.js';
import { executeFrame } from '../infer/gather.js';
import { onnxOptions } from '../onnx/session-options.js';
import { configOf, fp32, int64 } from '../testing/samples.js';
import { defaultHostEntry, HostProcess } from './host-process.js';

// Processes are started and killed; a busy machine may take its time.
jest.setTimeout(60_000);

let host: HostProcess;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'paceline-host-'));
  host = new HostProcess({
    clock: systemClock,
    shmDirectory: '/dev/shm',
    api: 'binding',
    entry: defaultHostEntry(),
    copies: { inBytes: 0, outBytes: 0 },
    onExit: () => undefined,
  });
});

afterEach(async () => {
  host.kill('ended', 'the test is over');
  await host.ended;
  rmSync(folder, { recursive: true });
});

/** Sends a frame and waits for its answer. */
function ask(make: (sequence: number) => Buffer): { sequence: number; answer: Promise<Buffer> } {
  const sequence = host.nextSequence();
  const answer = new Promise<Buffer>((resolve, reject) => {
    const work = {
      limitUs: 1e9,
      what: 'a test',
      onAnswer: (frame: Buffer) => resolve(Buffer.from(frame)),
      onGone: (_: boolean, reason: string) => reject(new Error(reason)),
    };
    host.send(make(sequence), sequence, work);
  });
  return { sequence, answer };
}

const typeOf = (frame: Buffer): number => frame.readUInt32LE(4);

function loadSlow(instance: number): Promise<Buffer> {
  const modelPath = join(folder, 'model.onnx');
  writeFileSync(modelPath, slowModel());
  const message: LoadMessage = {
    backend: 'onnxruntime',
    modelPath,
    inputs: [
      { name: 'INPUT0', datatype: 'FP32', shape: [-1, 1], optional: false },
      { name: 'ITERS', datatype: 'INT64', shape: [-1, 1], optional: false },
    ],
    outputs: [{ name: 'OUTPUT0', datatype: 'FP32', shape: [-1, 1] }],
    options: onnxOptions(configOf('slow')).options,
  };
  return ask((sequence) => jsonFrame(FRAME.load, instance, sequence, message)).answer;
}

function execute(instance: number, iterations: bigint) {
  const inputs = [fp32('INPUT0', [1, 1], [1]), int64('ITERS', [1, 1], [iterations])];
  const gathered = {
    inputs: inputs.map((t, index) => ({ index, shape: t.shape, byteLength: t.data.byteLength, parts: [t.data] })),
    wanted: [0],
    totalBytes: 12,
  };
  return ask((sequence) => executeFrame(gathered, { instance, sequence, slot: 0, flags: 0, shared: host.shared }));
}

test('an execute that has not begun can be cancelled; the one that runs goes on', async () => {
  expect(typeOf(await loadSlow(5))).toBe(FRAME.loaded);
  // Stopped until all is in its socket: else it might be through before it is told to cancel.
  const pid = host.pid ?? Number.NaN;
  process.kill(pid, 'SIGSTOP');
  const running = execute(5, 1n);
  const second = execute(5, 1n);
  const third = execute(5, 1n);
  host.cancel(second.sequence);
  process.kill(pid, 'SIGCONT');
  expect(typeOf(await running.answer)).toBe(FRAME.result);
  const cancelled = await second.answer;
  expect(typeOf(cancelled)).toBe(FRAME.failed);
  expect(jsonBody(cancelled)).toMatchObject({ code: 'CANCELLED' });
  expect(typeOf(await third.answer)).toBe(FRAME.result);
});

test('an unknown instance and an unknown frame are answered, and the host goes on', async () => {
  expect(jsonBody(await execute(9, 1n).answer)).toMatchObject({ reason: 'unknown_instance' });
  expect(jsonBody(await ask((s) => emptyFrame(99 as 8, 0, s)).answer)).toMatchObject({ reason: 'unknown_frame' });
  expect(typeOf(await ask((s) => emptyFrame(FRAME.ping, 0, s)).answer)).toBe(FRAME.pong);
});

test('the signals of a terminal do not end it', async () => {
  await ask((s) => emptyFrame(FRAME.ping, 0, s)).answer;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(host.pid!, signal);
  expect(typeOf(await ask((s) => emptyFrame(FRAME.ping, 0, s)).answer)).toBe(FRAME.pong);
});

test('a host that cannot start says how it ended', async () => {
  const entry = join(folder, 'exit.js');
  writeFileSync(entry, 'process.exit(3)');
  const broken = new HostProcess({
    clock: systemClock,
    shmDirectory: '',
    api: 'binding',
    entry,
    copies: { inBytes: 0, outBytes: 0 },
    onExit: () => undefined,
  });
  const reason = await new Promise<string>((resolve) => {
    broken.send(emptyFrame(FRAME.ping, 0, 1), 1, {
      limitUs: 1e9,
      what: 'a test',
      onAnswer: () => resolve('answered'),
      onGone: (_, why) => resolve(why),
    });
  });
  expect(reason).toBe('the instance host exited with code 3');
});
