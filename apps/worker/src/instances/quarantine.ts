/**
 * Where batches run whose requests have taken instances down: a host of its own, started when the first such batch
 * comes and ended when none has come for a while. It is no instance that others know of: it is never announced, and its
 * death takes no capacity away. One batch at a time; every batch ends in exactly one completion.
 */
import type { Timer } from '@paceline/clock';
import { CPU_DEVICE } from '@paceline/core';
import { ServingError, toServingError } from '@paceline/protocol';
import type { Batch, BatchCompletion } from '@paceline/worker-rpc';
import { unanswered } from '../infer/completion.js';
import { Backoff } from '../supervision/backoff.js';
import type { LoadedModel } from './loaded-model.js';
import { ModelInstance } from './model-instance.js';
import type { InstanceContext } from './instance-context.js';

const KEEP_IDLE_US = 10_000_000;

export class Quarantine {
  readonly #waiting: Batch[] = [];
  readonly #context: InstanceContext;
  readonly #backoff = new Backoff();
  #running: Batch | undefined;
  #instance: ModelInstance | undefined;
  #timer: Timer | undefined;
  /** Reported after a pause. */
  #failed: BatchCompletion | undefined;
  #stopped = false;
  #idleWaiters: (() => void)[] = [];

  /** @param nextId a number for an instance that no other of this worker has */
  constructor(
    private readonly model: LoadedModel,
    private readonly context: InstanceContext,
    private readonly nextId: () => number,
  ) {
    this.#context = {
      ...context,
      observer: undefined,
      onInstance: (event) => {
        if (event.state === 'down') void this.#drop();
      },
      onCompletion: (completion) => this.#onCompletion(completion),
    };
  }

  execute(batch: Batch): void {
    this.#waiting.push(batch);
    queueMicrotask(() => this.#next());
  }

  /** Refuses what waits and ends the host. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#failed) this.#onCompletion(this.#failed);
    this.#next();
    await this.#drop();
  }

  /** Resolves when no batch is with it. */
  idle(): Promise<void> {
    return this.#running || this.#waiting.length > 0 ? new Promise((resolve) => this.#idleWaiters.push(resolve)) : Promise.resolve();
  }

  #next(): void {
    if (this.#stopped) {
      const error = new ServingError('UNAVAILABLE', `model '${this.model.spec.model}' is being unloaded`, { reason: 'instance_not_ready' });
      for (const batch of this.#waiting.splice(0)) this.context.onCompletion(unanswered(batch, 'refused', false, error));
      return;
    }
    if (this.#running) return;
    this.#timer?.cancel();
    const batch = this.#waiting.shift();
    if (!batch) {
      for (const waiter of this.#idleWaiters.splice(0)) waiter();
      this.#timer = this.context.clock.setTimer(KEEP_IDLE_US, () => void this.#drop());
      return;
    }
    this.#running = batch;
    void this.#run(batch);
  }

  async #run(batch: Batch): Promise<void> {
    try {
      const instance = (this.#instance ??= await this.#start());
      instance.execute(batch);
    } catch (thrown) {
      const { code, message } = toServingError(thrown);
      const error = new ServingError(code, `the request took its instance down and could not be tried apart from others: ${message}`, {
        reason: 'quarantine_failed',
      });
      const failed = unanswered(batch, 'lost', false, error);
      if (this.#stopped) return this.#onCompletion(failed);
      // Not at once: whoever sent it will send it again.
      this.#failed = failed;
      const delayUs = this.#backoff.down(this.context.clock.nowUs());
      this.#timer = this.context.clock.setTimer(delayUs, () => this.#onCompletion(failed));
    }
  }

  async #start(): Promise<ModelInstance> {
    // On the device of the first of the model's instances: what took one of them down is tried where it did.
    const device = this.model.backend.instances[0]?.device ?? CPU_DEVICE;
    const instance = new ModelInstance(this.nextId(), `${this.model.spec.model}_quarantine`, device, this.model, this.#context, false);
    try {
      await instance.start();
      if (this.#stopped) throw new ServingError('UNAVAILABLE', 'the model is being unloaded', { reason: 'instance_not_ready' });
    } catch (error) {
      await instance.stop();
      throw error;
    }
    this.#backoff.up(this.context.clock.nowUs());
    return instance;
  }

  #onCompletion(completion: BatchCompletion): void {
    this.#running = undefined;
    this.#failed = undefined;
    if (completion.outcome === 'lost') void this.#drop();
    this.context.onCompletion(completion);
    this.#next();
  }

  async #drop(): Promise<void> {
    const instance = this.#instance;
    this.#instance = undefined;
    await instance?.stop();
  }
}
