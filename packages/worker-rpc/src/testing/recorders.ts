/** What a worker told its scheduler and sent to gateways, with promises for what is still to come. */
import type { ReplyFrame, RequestRef } from '@paceline/protocol';
import type { BatchCompletion, InstanceEvent, WorkerListener } from '../worker-link.js';

export class RecordingListener implements WorkerListener {
  readonly completions: BatchCompletion[] = [];
  readonly events: InstanceEvent[] = [];
  readonly #waiters = new Set<() => void>();

  onInstance(event: InstanceEvent): void {
    this.events.push(event);
    this.#wake();
  }

  onCompletion(completion: BatchCompletion): void {
    this.completions.push(completion);
    this.#wake();
  }

  /** Resolves when batch `id` has completed. */
  completion(id: number): Promise<BatchCompletion> {
    return this.#find(() => this.completions.find((c) => c.batchId === id));
  }

  /** Resolves with the first event of that state at or after position `from` of `events`. */
  event(state: InstanceEvent['state'], from = 0): Promise<InstanceEvent> {
    return this.#find(() => this.events.slice(from).find((e) => e.state === state));
  }

  #find<T>(look: () => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const attempt = () => {
        const found = look();
        if (found === undefined) return;
        this.#waiters.delete(attempt);
        resolve(found);
      };
      this.#waiters.add(attempt);
      attempt();
    });
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }
}

/** A reply channel that keeps what was sent, by request number. */
export class RecordingReplies {
  readonly frames = new Map<number, ReplyFrame[]>();

  send(ref: RequestRef, frame: ReplyFrame): void {
    const frames = this.frames.get(ref.number) ?? [];
    frames.push(frame);
    this.frames.set(ref.number, frames);
  }

  /** The one frame of a request that was answered with a result. @throws Error when it was not */
  only(number: number): Extract<ReplyFrame, { ok: true }> {
    const frames = this.frames.get(number) ?? [];
    const [frame] = frames;
    if (frames.length !== 1 || !frame?.ok) throw new Error(`request ${number} has ${frames.length} frames, expected one result`);
    return frame;
  }
}
