/**
 * The batches that are with one model instance, at most two: one running, one staged. Invariant: every batch that was
 * given ends in exactly one completion, and its members are answered before it if it went well.
 */
import { ServingError } from '@paceline/protocol';
import type { Batch } from '@paceline/worker-rpc';
import { FRAME } from '../host-protocol/frames.js';
import type { Berth } from '../hosts/host-fleet.js';
import type { HostEnd } from '../hosts/host-process.js';
import { POOL_COPY_BYTES } from '../hosts/shared-file.js';
import { batchSpans, runOf } from '../infer/batch-spans.js';
import { asServingError, unanswered } from '../infer/completion.js';
import { deliver, type ComputeStages, type Delivery } from '../infer/deliver.js';
import { executeFrame, gather, writeLargeInputs, type GatheredBatch } from '../infer/gather.js';
import { readLargeOutputs, readOutputs, type BatchOutputs } from '../infer/scatter.js';
import { beginLimitUs, type InstanceContext } from './instance-context.js';
import { failure } from './load-into.js';
import type { LoadedModel } from './loaded-model.js';

const MOST_BATCHES = 2;

/** When a batch was given to the instance, when the host was free for it, and when its answer came. */
type Took = Pick<Delivery, 'beganUs' | 'arrivedUs'> & { readonly givenUs: number };

export class InstanceBatches {
  #count = 0;
  /** When the last batch ended, to know from when on the next one had the host to itself. */
  #freeSinceUs = 0;
  #idleWaiters: (() => void)[] = [];

  constructor(
    private readonly id: number,
    private readonly name: string,
    private readonly model: LoadedModel,
    private readonly context: InstanceContext,
    /** A run was long for a host that others are in. */
    private readonly onSlowRun: () => void,
  ) {}

  /** Resolves when there is none. */
  idle(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** The instance has come up in a host. */
  hostIsFree(nowUs: number): void {
    this.#freeSinceUs = nowUs;
  }

  /** @param berth where the instance lives now, with a host that is alive */
  execute(batch: Batch, berth: Berth): void {
    if (this.#count >= MOST_BATCHES) return this.refuse(batch, `instance '${this.name}' has ${MOST_BATCHES} batches already`);
    const { clock, copies } = this.context;
    const givenUs = clock.nowUs();
    let gathered: GatheredBatch;
    try {
      gathered = gather(batch, this.model.tensors);
    } catch (error) {
      queueMicrotask(() => this.#complete(batch, 'failed', false, asServingError(error), givenUs));
      return;
    }
    const slot = berth.host.takeSlot();
    copies.inBytes += gathered.totalBytes;
    this.#count += 1;
    const { shared } = berth.host;
    if (shared === undefined || gathered.totalBytes <= POOL_COPY_BYTES) return this.#give(batch, berth, gathered, slot, givenUs);
    void writeLargeInputs(gathered, shared, slot).then((written) => this.#give(batch, berth, gathered, slot, givenUs, written));
  }

  /** @param written see {@link FrameTarget} */
  #give(batch: Batch, berth: Berth, gathered: GatheredBatch, slot: number, givenUs: number, written?: boolean): void {
    const { host } = berth;
    const sequence = host.nextSequence();
    const target = {
      instance: this.id,
      sequence,
      slot,
      flags: host.startFlag,
      shared: host.shared,
      ...(written !== undefined && { written }),
    };
    const frame = executeFrame(gathered, target);
    const limitUs = this.model.limit.limitUs(gathered.totalBytes);
    const work = {
      limitUs,
      beginLimitUs: beginLimitUs(this.context, gathered.totalBytes),
      what: `a run of model '${batch.model}'`,
      onAnswer: (answer: Buffer) => this.#onAnswer(batch, berth, answer, givenUs, gathered.totalBytes),
      onGone: (started: boolean, reason: string, cause?: HostEnd['cause']) =>
        this.#onLost(batch, started, reason, givenUs, cause === 'hung' ? limitUs : undefined),
    };
    host.send(frame, sequence, work, slot);
  }

  #onAnswer(batch: Batch, berth: Berth, answer: Buffer, givenUs: number, inputBytes: number): void | Promise<void> {
    const { clock } = this.context;
    const arrivedUs = clock.nowUs();
    const beganUs = Math.max(givenUs, this.#freeSinceUs);
    this.#freeSinceUs = arrivedUs;
    if (answer.readUInt32LE(4) !== FRAME.result) return this.#complete(batch, 'failed', true, failure(answer), givenUs);
    const took = { givenUs, beganUs, arrivedUs };
    const large = readLargeOutputs(answer, berth.host.shared);
    if (large === undefined) return this.#deliver(batch, berth, readOutputs(answer, berth.host.shared), took, inputBytes);
    return large.then(
      (outputs) => this.#deliver(batch, berth, outputs, took, inputBytes),
      (error: unknown) => this.#complete(batch, 'failed', true, asServingError(error), givenUs),
    );
  }

  #deliver(batch: Batch, berth: Berth, outputs: BatchOutputs, took: Took, inputBytes: number): void {
    const { clock, replies, copies, tracing } = this.context;
    let stages: ComputeStages;
    try {
      stages = deliver(batch, outputs, {
        tensors: this.model.tensors,
        replies,
        clock,
        copies,
        ...took,
      });
    } catch (error) {
      return this.#complete(batch, 'failed', true, asServingError(error), took.givenUs);
    }
    if (tracing) batchSpans(tracing, batch, { ...took, run: runOf(outputs, took.arrivedUs), endUs: clock.nowUs() });
    this.model.limit.record(stages.computeInferNs / 1000, inputBytes);
    this.#end();
    this.context.onCompletion({ batchId: batch.id, instance: batch.instance, outcome: 'ok', started: true, error: undefined, ...stages });
    if (berth.pool && stages.computeInferNs > 1000 * this.context.slowRunUs && !this.model.isolated) {
      this.model.isolated = true;
      this.onSlowRun();
    }
  }

  /** @param overLimitUs the limit, if the host was ended because a run took longer */
  #onLost(batch: Batch, started: boolean, reason: string, givenUs: number, overLimitUs: number | undefined): void {
    if (started) this.model.isolated = true;
    const hung = started && overLimitUs !== undefined;
    if (hung) this.model.limit.outlived(overLimitUs);
    const error = new ServingError(
      hung ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE',
      `model '${batch.model}' lost its instance '${this.name}': ${reason}`,
      {
        reason: hung ? 'execute_limit' : 'instance_lost',
      },
    );
    this.#complete(batch, 'lost', started, error, givenUs);
  }

  #complete(batch: Batch, outcome: 'failed' | 'lost', started: boolean, error: ServingError, givenUs: number): void {
    const { tracing, clock } = this.context;
    if (tracing) batchSpans(tracing, batch, { givenUs, endUs: clock.nowUs() }, error);
    if (started || outcome === 'lost') this.#end();
    this.context.onCompletion(unanswered(batch, outcome, started, error));
  }

  /** The instance cannot take it; nothing has run. */
  refuse(batch: Batch, why: string): void {
    const error = new ServingError('UNAVAILABLE', why, { reason: 'instance_not_ready' });
    queueMicrotask(() => this.context.onCompletion(unanswered(batch, 'refused', false, error)));
  }

  #end(): void {
    this.#count -= 1;
    if (this.#count > 0) return;
    for (const waiter of this.#idleWaiters.splice(0)) waiter();
  }
}
