// The generated models run in ONNX Runtime, compute what they claim, and batch: n rows answer as n single rows do.
import { describe, expect, test } from '@jest/globals';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { OCR_DIRECTION, TINY, TREES, type BenchModel } from './catalog.js';
import { networkModel, seededLayers } from './network.js';
import { inputBatch, inputRow } from '../requests/inputs.js';

const quiet = { logSeverityLevel: 3 as const, intraOpNumThreads: 1 };

async function outputs(model: BenchModel, session: InferenceSession, first: number, rows: number): Promise<number[]> {
  const x = new Tensor('float32', inputBatch(model, first, rows), [rows, ...model.inputShape]);
  return Array.from((await session.run({ [model.inputName]: x }))[model.outputName]?.data as Float32Array);
}

describe('models of the benchmark', () => {
  test.each([TINY, TREES, OCR_DIRECTION])('$name: a batch answers as its rows alone do', async (model) => {
    const session = await InferenceSession.create(model.file(), quiet);
    const together = await outputs(model, session, 0, 4);
    expect(together).toHaveLength(4 * model.outputElements);
    for (let row = 0; row < 4; row++) {
      const alone = await outputs(model, session, row, 1);
      alone.forEach((value, i) => {
        expect(together[row * model.outputElements + i]).toBeCloseTo(value, 5);
      });
    }
  });

  test('the network computes ReLU(x W + b) layer by layer', async () => {
    const layers = seededLayers([16, 32, 4], 1);
    let values = Array.from(Float32Array.from(inputRow(TINY, 0)));
    layers.forEach(({ rows, columns, weights, bias }, i) => {
      values = Array.from({ length: columns }, (_, column) => {
        let sum = bias[column] ?? 0;
        for (let row = 0; row < rows; row++) sum += (values[row] ?? 0) * (weights[row * columns + column] ?? 0);
        return i < layers.length - 1 ? Math.max(0, sum) : sum;
      });
    });
    const session = await InferenceSession.create(TINY.file(), quiet);
    (await outputs(TINY, session, 0, 1)).forEach((value, i) => {
      expect(value).toBeCloseTo(values[i] ?? Number.NaN, 5);
    });
  });

  test('the quantised network stays near the exact one', async () => {
    const layers = seededLayers([64, 128, 64, 8], 3);
    const model: BenchModel = { ...TINY, inputShape: [64], outputElements: 8 };
    const [exact, quantised] = await Promise.all(
      (['fp32', 'int8'] as const).map(async (precision) =>
        outputs(model, await InferenceSession.create(networkModel(layers, precision), quiet), 0, 1),
      ),
    );
    const size = Math.max(...(exact ?? []).map(Math.abs));
    exact?.forEach((value, i) => {
      expect(Math.abs((quantised?.[i] ?? Number.NaN) - value)).toBeLessThan(0.05 * size);
    });
    expect(quantised).not.toEqual(exact);
  });

  test('trees depend on their input', async () => {
    const session = await InferenceSession.create(TREES.file(), quiet);
    const probabilities = await outputs(TREES, session, 0, 32);
    expect(new Set(probabilities.map((p) => p.toFixed(4))).size).toBeGreaterThan(32);
    for (let row = 0; row < 32; row++) expect((probabilities[row * 2] ?? 0) + (probabilities[row * 2 + 1] ?? 0)).toBeCloseTo(1, 5);
  });
});
