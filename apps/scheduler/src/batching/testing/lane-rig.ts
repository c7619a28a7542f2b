/** For tests: lanes with everything around them faked, on a clock that stands still. */
import { FakeClock } from '@paceline/clock/testing';
import { StatisticsRegistry } from '@paceline/telemetry';
import { LaneIntake } from '../../intake/lane-intake.js';
import { Lanes } from '../lanes.js';
import { envelope, FakeWorker, RecordedReplies } from './fakes.js';

export class LaneRig {
  readonly clock = new FakeClock();
  readonly worker = new FakeWorker();
  readonly replies = new RecordedReplies();
  readonly statistics = new StatisticsRegistry();
  readonly lanes = new Lanes({ clock: this.clock, link: this.worker, replies: this.replies, statistics: this.statistics });
  readonly intake = new LaneIntake(this.lanes, this.replies);

  constructor() {
    this.worker.setListener(this.lanes);
  }

  /** Sends requests of one row with these numbers, in one turn of the event loop. */
  readonly send = (...numbers: number[]): void => {
    for (const number of numbers) this.intake.onEnvelope(envelope(number));
    this.clock.advance(0);
  };

  /** Requests of model `m` version 1 that wait. */
  readonly pending = (): number => this.statistics.forVersion('m', '1').pendingRequests;
}
