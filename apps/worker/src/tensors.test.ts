// Tensors through a real host: every data type, mixed rows, large ones through shared memory, and what cannot be cut.
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { identityModel, onnxModel, scaleModel } from '@paceline/testkit';
import { DATA_TYPES, elementSize, type DataType, type Tensor } from '@paceline/tensor';
import { bytes, fp32, readFp32 } from './testing/samples.js';
import { WorkerFixture } from './testing/worker-fixture.js';

// Processes are started and killed; a busy machine may take its time.
jest.setTimeout(60_000);

let fixture: WorkerFixture;
afterEach(() => fixture.close());

const SERVED = DATA_TYPES.filter((d) => d !== 'BF16');

/** Bytes that are a valid tensor of `elements` elements; each element differs. */
function sample(datatype: DataType, elements: number): Uint8Array {
  if (datatype === 'BYTES')
    return bytes(
      '',
      [],
      Array.from({ length: elements }, (_, i) => `é${'x'.repeat(i)}日`),
    ).data;
  if (datatype === 'BOOL') return Uint8Array.from({ length: elements }, (_, i) => i % 2);
  return Uint8Array.from({ length: elements * elementSize(datatype) }, (_, i) => (i * 37 + 11) % 120);
}

function identityOptions(datatype: DataType, columns: number) {
  return {
    onnx: identityModel({ datatype, dims: [columns] }),
    inputs: [['INPUT0', datatype, [-1, columns]]] as const,
    outputs: [['OUTPUT0', datatype, [-1, columns]]] as const,
  };
}

for (const runtimeApi of ['binding', 'session'] as const) {
  test(`every data type comes back as it went, alone and cut from a batch (${runtimeApi})`, async () => {
    fixture = new WorkerFixture({ runtimeApi, dedicatedHosts: 1 });
    for (const datatype of SERVED) {
      const spec = await fixture.load(`identity_${datatype.toLowerCase()}`, identityOptions(datatype, 3));
      const data = sample(datatype, 3);
      const other = sample(datatype, 6);
      const input = (rows: number, d: Uint8Array): Tensor => ({ name: 'INPUT0', datatype, shape: [rows, 3], data: d });
      const [alone] = await fixture.infer(spec, [input(1, data)], ['OUTPUT0']);
      expect({ datatype, shape: alone?.shape, data: Buffer.from(alone!.data).toString('hex') }).toEqual({
        datatype,
        shape: [1, 3],
        data: Buffer.from(data).toString('hex'),
      });
      const members = [fixture.member([input(2, other)], ['OUTPUT0'], 2), fixture.member([input(1, data)], ['OUTPUT0'])];
      expect((await fixture.run(spec, members)).error).toBeUndefined();
      const cut = members.map((m) => fixture.replies.only(m.ref.number).outputs[0]!);
      expect(cut.map((t) => [t.shape, Buffer.from(t.data).toString('hex')])).toEqual([
        [[2, 3], Buffer.from(other).toString('hex')],
        [[1, 3], Buffer.from(data).toString('hex')],
      ]);
    }
  });
}

test('BF16 is refused when the model is loaded', async () => {
  fixture = new WorkerFixture();
  await expect(fixture.load('bf16', identityOptions('BF16', 2))).rejects.toThrow(/BF16|Unsupported data type|type 16/);
});

test('a batch of mixed rows gives each member its own', async () => {
  fixture = new WorkerFixture();
  const spec = await fixture.load('scale', {
    onnx: scaleModel({ dims: [2], factor: 3 }),
    inputs: [['INPUT0', 'FP32', [-1, 2]]],
    outputs: [['OUTPUT0', 'FP32', [-1, 2]]],
    maxBatchSize: 64,
  });
  const rows = [3, 1, 7, 2, 1];
  let next = 0;
  const members = rows.map((n) =>
    fixture.member(
      [
        fp32(
          'INPUT0',
          [n, 2],
          Array.from({ length: 2 * n }, () => next++),
        ),
      ],
      ['OUTPUT0'],
      n,
    ),
  );
  expect((await fixture.run(spec, members)).outcome).toBe('ok');
  let expected = 0;
  for (const [i, member] of members.entries()) {
    const [output] = fixture.replies.only(member.ref.number).outputs;
    expect(output!.shape).toEqual([rows[i], 2]);
    expect([...readFp32(output)]).toEqual(Array.from({ length: 2 * rows[i]! }, () => 3 * expected++));
  }
});

test('thousands of members in one batch are gathered through shared memory', async () => {
  fixture = new WorkerFixture();
  const spec = await fixture.load('scale', {
    onnx: scaleModel({ dims: [32], factor: 2 }),
    inputs: [['INPUT0', 'FP32', [-1, 32]]],
    outputs: [['OUTPUT0', 'FP32', [-1, 32]]],
    maxBatchSize: 4096,
  });
  const members = Array.from({ length: 3000 }, (_, i) =>
    fixture.member([fp32('INPUT0', [1, 32], new Float32Array(32).fill(i))], ['OUTPUT0']),
  );
  expect((await fixture.run(spec, members)).outcome).toBe('ok');
  const firsts = members.map((m) => readFp32(fixture.replies.only(m.ref.number).outputs[0])[31]);
  expect(firsts).toEqual(members.map((_, i) => 2 * i));
});

describe('large tensors', () => {
  const COLUMNS = 150_000; // 600 KB a row
  const large = (fill: number): Tensor =>
    fp32(
      'INPUT0',
      [1, COLUMNS],
      new Float32Array(COLUMNS).map((_, i) => fill + i),
    );

  test('600 KB go through shared memory with two copies each way on this side of the HTTP body', async () => {
    fixture = new WorkerFixture();
    const spec = await fixture.load('large', identityOptions('FP32', COLUMNS));
    const members = [fixture.member([large(1)], ['OUTPUT0']), fixture.member([large(5)], ['OUTPUT0'])];
    expect((await fixture.run(spec, members)).outcome).toBe('ok');
    for (const [i, member] of members.entries()) {
      const output = readFp32(fixture.replies.only(member.ref.number).outputs[0]);
      expect([output.length, output[0], output[COLUMNS - 1]]).toEqual([COLUMNS, [1, 5][i], [1, 5][i]! + COLUMNS - 1]);
    }
    const payload = 2 * 4 * COLUMNS;
    expect(await fixture.worker.statistics()).toMatchObject({ copiedInBytes: 2 * payload, copiedOutBytes: 2 * payload });
  });

  test.each([
    ['there is no shared memory', ''],
    ['its directory cannot be written', '/proc'],
  ])('they go by the socket when %s', async (_, shmDirectory) => {
    fixture = new WorkerFixture({ shmDirectory });
    const spec = await fixture.load('large', identityOptions('FP32', COLUMNS));
    const [output] = await fixture.infer(spec, [large(2)], ['OUTPUT0']);
    const values = readFp32(output);
    expect([values[0], values[COLUMNS - 1]]).toEqual([2, 2 + COLUMNS - 1]);
  });

  test('many batches two at a time never mix their slots', async () => {
    fixture = new WorkerFixture();
    const spec = await fixture.load('large', identityOptions('FP32', COLUMNS));
    const sent = [];
    for (let i = 0; i < 12; i++) {
      if (i >= 2) await fixture.listener.completion(sent[i - 2]!.batch.id);
      const member = fixture.member([large(100 * i)], ['OUTPUT0']);
      const batch = fixture.batch(spec, [member]);
      fixture.worker.execute(batch);
      sent.push({ batch, member });
    }
    await fixture.listener.completion(sent.at(-1)!.batch.id);
    for (const [i, { member }] of sent.entries()) {
      const values = readFp32(fixture.replies.only(member.ref.number).outputs[0]);
      expect([values[0], values[COLUMNS - 1]]).toEqual([100 * i, 100 * i + COLUMNS - 1]);
    }
  });
});

test('an output that has lost the batch dimension is an error for the batch, never a foreign row', async () => {
  fixture = new WorkerFixture();
  const onnx = onnxModel({
    nodes: [{ op: 'ReduceSum', inputs: ['INPUT0'], outputs: ['OUTPUT0'], attributes: { keepdims: 1n } }],
    inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: ['b', 2] }],
    outputs: [{ name: 'OUTPUT0', datatype: 'FP32', shape: [1, 1] }],
  });
  const spec = await fixture.load('sum', { onnx, inputs: [['INPUT0', 'FP32', [-1, 2]]], outputs: [['OUTPUT0', 'FP32', [-1, 1]]] });
  const members = [1, 2].map(() => fixture.member([fp32('INPUT0', [1, 2], [1, 2])], ['OUTPUT0']));
  const completion = await fixture.run(spec, members);
  expect(completion).toMatchObject({ outcome: 'failed', error: { reason: 'output_not_batched' } });
  expect(completion.error?.message).toContain("output 'OUTPUT0' of model 'sum' has shape [1,1], expected a first dimension of 2");
  expect(fixture.replies.frames.size).toBe(0);
});

test('BYTES that a model string cannot hold are named', async () => {
  fixture = new WorkerFixture();
  const spec = await fixture.load('text', identityOptions('BYTES', 2));
  const infer = (...values: (string | Uint8Array)[]) => fixture.infer(spec, [bytes('INPUT0', [1, 2], values)], ['OUTPUT0']);
  await expect(infer('ok', Uint8Array.of(0xff, 0xfe))).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining("element 1 of input 'INPUT0' is not valid UTF-8"),
  });
  await expect(infer('a\0b', 'ok')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('zero byte') });
  await expect(infer('one')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('expected 2 elements') });
  const [output] = await infer('', '\ufeffé');
  expect(Buffer.from(output!.data)).toEqual(Buffer.from(bytes('', [], ['', '\ufeffé']).data));
});

test('an empty batch dimension and a model that does not batch', async () => {
  fixture = new WorkerFixture();
  const spec = await fixture.load('plain', {
    onnx: identityModel({ datatype: 'FP32', dims: [-1, 2], batching: false }),
    inputs: [['INPUT0', 'FP32', [-1, 2]]],
    outputs: [['OUTPUT0', 'FP32', [-1, 2]]],
    maxBatchSize: 0,
  });
  expect((await fixture.infer(spec, [fp32('INPUT0', [3, 2], [1, 2, 3, 4, 5, 6])], ['OUTPUT0']))[0]?.shape).toEqual([3, 2]);
  expect((await fixture.infer(spec, [fp32('INPUT0', [0, 2], [])], ['OUTPUT0']))[0]).toMatchObject({ shape: [0, 2] });
  await expect(fixture.infer(spec, [fp32('INPUT0', [2, 3], [1, 2, 3, 4, 5, 6])], ['OUTPUT0'])).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/onnx runtime error 2: Got invalid dimensions for input: INPUT0/),
  });
});
