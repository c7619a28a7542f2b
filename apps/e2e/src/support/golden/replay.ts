/**
 * Replays recordings against a running server. Invariant: every difference is either listed, with a reason and the exact
 * answer that stands instead, or a failure; and whatever is listed really differs, so that the list cannot outlive its
 * cause.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { cutDown, differences } from './compare.js';
import { GrpcExchanges } from './grpc-exchange.js';
import { exchangeHttp } from './http-exchange.js';
import type { AcceptedDifference, Answer, Recording, Step } from './recording.js';

export interface Target {
  /** `host:port`. */
  readonly http: string;
  readonly grpc: string;
}

const ASK_AGAIN_MS = 50;

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

export interface ReplayOptions {
  /** Steps that change nothing and ask for what becomes known a moment later: asked again until it is as it should be, for so long. */
  readonly late?: { readonly is: (step: Step) => boolean; readonly limitMs: number };
}

/** One after the other, in the order given: statistics in the recordings count what came before. */
export async function replay(
  recordings: readonly Recording[],
  accepted: readonly AcceptedDifference[],
  target: Target,
  { late }: ReplayOptions = {},
): Promise<readonly StepOutcome[]> {
  const listed = new Map(accepted.map((a) => [`${a.id} ${a.step}`, a]));
  const grpc = new GrpcExchanges(target.grpc);
  const outcomes: StepOutcome[] = [];
  try {
    for (const recording of recordings) {
      for (const [index, step] of recording.steps.entries()) {
        const difference = listed.get(`${recording.id} ${index}`);
        listed.delete(`${recording.id} ${index}`);
        const outcome = async (): Promise<StepOutcome> => {
          const answer = cutDown(step, await perform(step, target, grpc));
          const fromRecording = differences(step, step.answer, answer);
          const failures = judge(step, answer, fromRecording, difference);
          return { recording, step: index, answer, fromRecording, accepted: difference, failures };
        };
        let last = await outcome();
        const limitMs = performance.now() + (late?.is(step) ? late.limitMs : 0);
        while (last.failures.length > 0 && performance.now() < limitMs) {
          await delay(ASK_AGAIN_MS);
          last = await outcome();
        }
        outcomes.push(last);
      }
    }
  } finally {
    grpc.close();
  }
  if (listed.size > 0) throw new Error(`accepted differences of no recorded step: ${[...listed.keys()].join(', ')}`);
  return outcomes;
}
