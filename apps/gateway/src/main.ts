/** Entry of a gateway's process. */
import { runProcess } from '@paceline/nest-kit';
import { startGateway } from './cluster/start-gateway.js';

const gateway = {
  program: 'gateway',
  start: async (...given: Parameters<typeof startGateway>) => {
    const running = await startGateway(...given);
    const { id, addresses, linkAddress } = running;
    return {
      startedAs: { id, ...addresses, link: linkAddress },
      get unfinished() {
        return running.unanswered;
      },
      drain: (limitMs: number) => running.drain(limitMs),
    };
  },
};

process.exit(await runProcess(gateway, process.argv.slice(2), process.env));
