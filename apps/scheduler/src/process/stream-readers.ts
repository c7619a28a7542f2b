/** Opens a reader for the stream of each partition that is taken over, and counts over all of them. */
import type { Clock } from '@paceline/clock';
import type { JoinedCluster } from '@paceline/nest-kit';
import { PartitionReader, type PartitionReaderCounters, type RequestIntake } from '@paceline/streams';
import type { AcquiredLease } from '../partitions/lease-keeper.js';
import type { IntakeReader } from '../partitions/partition-owner.js';

export interface StreamReadersPorts {
  readonly joined: JoinedCluster;
  readonly clock: Clock;
  /** Id of this process, as in its leases. */
  readonly owner: string;
  /** One sentence for the log. */
  readonly onProblem: (text: string) => void;
}

export class StreamReaders {
  /** Since the process started. */
  readonly counters: PartitionReaderCounters = { entries: 0, requests: 0, undecodable: 0 };

  /** By partition: how far this process has read. Where the lease knows less, what lies between must not be run again. */
  readonly #read = new Map<number, string>();

  constructor(private readonly ports: StreamReadersPorts) {}

  read({ partition, cursor }: AcquiredLease, intake: RequestIntake): IntakeReader {
    const { joined, clock, owner, onProblem } = this.ports;
    const { redis, keys } = joined;
    const { counters } = this;
    const reader = new PartitionReader({ clock, redis, keys: keys.partition(partition), owner, intake, onProblem, counters });
    const own = this.#read.get(partition) ?? cursor;
    reader.start({ cursor: isLater(own, cursor) ? own : cursor });
    return {
      stop: async () => {
        await reader.stop();
        this.#read.set(partition, reader.cursor);
      },
    };
  }
}

/** Of two ids of stream entries, `<milliseconds>-<number>`. */
function isLater(a: string, b: string): boolean {
  const [aMs = 0, aNumber = 0] = a.split('-').map(Number);
  const [bMs = 0, bNumber = 0] = b.split('-').map(Number);
  return aMs > bMs || (aMs === bMs && aNumber > bNumber);
}
