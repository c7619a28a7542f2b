/** The generator's own process: takes one load plan at a time from its parent and answers with the result. */
import { grpcClosedLoad } from './grpc-closed.load.js';
import { httpClosedLoad } from './http-closed.load.js';
import { httpOpenLoad } from './http-open.load.js';
import type { GeneratorMessage, LoadPlan, LoadResult } from './load-plan.js';

const tell = (message: GeneratorMessage): void => {
  process.send?.(message);
};
const onWindowOpen = (): void => {
  tell({ type: 'window-open' });
};

function run(plan: LoadPlan): Promise<LoadResult> {
  switch (plan.kind) {
    case 'http-closed':
      return httpClosedLoad(plan, onWindowOpen);
    case 'http-open':
      return httpOpenLoad(plan, onWindowOpen);
    case 'grpc-closed':
      return grpcClosedLoad(plan, onWindowOpen);
  }
}

process.on('message', (plan: LoadPlan) => {
  run(plan).then(
    (result) => {
      tell({ type: 'result', result });
    },
    (error: unknown) => {
      tell({ type: 'error', text: String(error) });
    },
  );
});
process.on('disconnect', () => process.exit(0));
tell({ type: 'ready' });
