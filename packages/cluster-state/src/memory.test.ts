// The in-memory adapter keeps the contracts, by a clock that the test moves.
import { FakeClock } from '@paceline/clock/testing';
import { InMemoryClusterState } from './memory.js';
import { describeDesiredState, describeLeases, describeMembership, type OpenStore } from './testing/index.js';

function open<Port>(choose: (state: InMemoryClusterState) => Port): OpenStore<Port> {
  return () => {
    const clock = new FakeClock();
    const state = new InMemoryClusterState(clock);
    return Promise.resolve({
      connect: () => choose(state),
      elapse: (ms: number) => {
        clock.advance(ms * 1000);
        return Promise.resolve();
      },
      close: () => Promise.resolve(),
    });
  };
}

describeLeases(
  'in memory',
  open((state) => state.leases),
);
describeMembership(
  'in memory',
  open((state) => state.membership),
);
describeDesiredState(
  'in memory',
  open((state) => state.desired),
);
