/** What a lane is joined to. */
import type { Clock } from '@paceline/clock';
import type { ReplyChannel } from '@paceline/streams';
import type { ModelStatistics, Tracing } from '@paceline/telemetry';
import type { Dispatcher } from '../dispatch/dispatcher.js';

export interface LanePorts {
  readonly clock: Clock;
  readonly dispatcher: Dispatcher;
  readonly replies: ReplyChannel;
  readonly statistics: ModelStatistics;
  /** Bound on queueing for requests without any other timeout, microseconds. */
  readonly queueTimeoutUs: number;
  /** Where spans go; without it there are none. */
  readonly tracing?: Tracing | undefined;
}
