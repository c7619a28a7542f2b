import { CONTRACT_WORKER, describeRemoteWorker } from './remote-contract.js';
import { InMemoryWorkers } from './in-memory-workers.js';

describeRemoteWorker('InMemoryWorkers', async (served) => {
  const workers = new InMemoryWorkers();
  workers.up(CONTRACT_WORKER, served);
  return {
    address: '',
    connectFrom: (scheduler) => workers.connectFrom(scheduler),
    cut() {
      workers.down(CONTRACT_WORKER);
      setImmediate(() => workers.up(CONTRACT_WORKER, served));
    },
    close: () => Promise.resolve(),
  };
});
