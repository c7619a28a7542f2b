/**
 * Replays recordings against a running server. Invariant: every difference is either listed, with a reason and the exact
 * answer that stands instead, or a failure; and whatever is listed really differs, so that the list cannot outlive its
 * cause.
 */
import { cutDown, differences } from './compare.js';
import { GrpcExchanges } from './grpc-exchange.js';
import { exchangeHttp } from './http-exchange.js';
import type { AcceptedDifference, Answer, Recording, Step } from './recording.js';

export interface Target {
  /** `host:port`. */
  readonly http: string;
  readonly grpc: string;
}

export interface StepOutcome {
  readonly recording: Recording;
  readonly step: number;
  /** What the server answered. */
  readonly answer: Answer;
  /** Against the recording. */
  readonly fromRecording: readonly string[];
  readonly accepted: AcceptedDifference | undefined;
  /** What is wrong; empty = nothing. */
  readonly failures: readonly string[];
}

function judge(step: Step, answer: Answer, fromRecording: readonly string[], accepted: AcceptedDifference | undefined): readonly string[] {
  if (accepted === undefined) return fromRecording;
  if (fromRecording.length === 0) return ['answered as recorded: take it off the accepted differences'];
  return differences(step, accepted.answer, answer);
}

async function perform(step: Step, target: Target, grpc: GrpcExchanges): Promise<Answer> {
  return 'http' in step ? exchangeHttp(target.http, step.http) : grpc.exchange(step.grpc);
}

/** One after the other, in the order given: statistics in the recordings count what came before. */
export async function replay(
  recordings: readonly Recording[],
  accepted: readonly AcceptedDifference[],
  target: Target,
): Promise<readonly StepOutcome[]> {
  const listed = new Map(accepted.map((a) => [`${a.id} ${a.step}`, a]));
  const grpc = new GrpcExchanges(target.grpc);
  const outcomes: StepOutcome[] = [];
  try {
    for (const recording of recordings) {
      for (const [index, step] of recording.steps.entries()) {
        const answer = cutDown(step, await perform(step, target, grpc));
        const fromRecording = differences(step, step.answer, answer);
        const difference = listed.get(`${recording.id} ${index}`);
        listed.delete(`${recording.id} ${index}`);
        const failures = judge(step, answer, fromRecording, difference);
        outcomes.push({ recording, step: index, answer, fromRecording, accepted: difference, failures });
      }
    }
  } finally {
    grpc.close();
  }
  if (listed.size > 0) throw new Error(`accepted differences of no recorded step: ${[...listed.keys()].join(', ')}`);
  return outcomes;
}
