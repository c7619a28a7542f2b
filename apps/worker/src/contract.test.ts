import { jest } from '@jest/globals';
import { addSubModel, gatherModel } from '@paceline/testkit';
import { describeWorkerLink } from '@paceline/worker-rpc/testing';
import { createLogger, SILENT } from '@paceline/telemetry';
import { createLocalWorker } from './local-worker.js';
import type { LocalWorkerOptions } from './local-worker.options.js';
import { WorkerFixture } from './testing/worker-fixture.js';

// Processes are started and killed; a busy machine may take its time.
jest.setTimeout(60_000);

const variants: readonly [string, Partial<LocalWorkerOptions>][] = [
  ['LocalWorker', {}],
  ['LocalWorker with pooled hosts', { dedicatedHosts: 0, poolHosts: 1 }],
  ['LocalWorker without shared memory, by the public runtime API', { shmDirectory: '', runtimeApi: 'session' }],
];

for (const [name, options] of variants) {
  describeWorkerLink(name, async (replies) => {
    const files = new WorkerFixture();
    const worker = createLocalWorker({ replies, logger: createLogger(SILENT), ...options });
    return {
      link: worker,
      models: {
        addSub: files.spec('add_sub', {
          onnx: addSubModel({ datatype: 'FP32', dims: [2] }),
          inputs: [
            ['INPUT0', 'FP32', [-1, 2]],
            ['INPUT1', 'FP32', [-1, 2]],
          ],
          outputs: [
            ['OUTPUT0', 'FP32', [-1, 2]],
            ['OUTPUT1', 'FP32', [-1, 2]],
          ],
        }),
        gather: files.spec('gather', {
          onnx: gatherModel(),
          inputs: [['INPUT0', 'INT64', [-1, 1]]],
          outputs: [['OUTPUT0', 'FP32', [-1, 1]]],
        }),
        broken: files.spec('broken', {
          onnx: Uint8Array.of(1, 2, 3),
          inputs: [['INPUT0', 'INT64', [-1, 1]]],
          outputs: [['OUTPUT0', 'FP32', [-1, 1]]],
        }),
      },
      close: async () => {
        await worker.close();
        await files.close();
      },
    };
  });
}
