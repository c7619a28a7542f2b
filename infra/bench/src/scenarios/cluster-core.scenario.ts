/** How many requests a second the decisions of a scheduler alone could take: what the lanes can never be the limit of. */
import { once } from 'node:events';
import { forkPinned } from '../targets/pinned.js';
import { scenarioResult, type Scenario } from './scenario.js';

export const clusterCoreScenario: Scenario = async ({ options }) => {
  const child = forkPinned(options.serverCore, 'targets/batchers.main', [String(Math.max(options.rounds, 2))]);
  const ended = once(child, 'exit').then((): [undefined] => [undefined]);
  const [rates] = (await Promise.race([once(child, 'message'), ended])) as [number[] | undefined];
  if (rates === undefined) throw new Error('the harness ended; see its output above');
  await ended;
  const what = '1,000 lanes, priorities, timeouts, 8 shapes: enqueue and decide';
  const values = rates.map((rate) => rate / 1e6);
  return scenarioResult('cluster-core', {
    figures: [{ scenario: 'cluster-core', what, unit: 'M/s', goal: { atLeast: 1 }, values }],
  });
};
