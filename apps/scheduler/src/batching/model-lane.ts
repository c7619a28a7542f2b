/**
 * Stop 4 of the request path: one generation of one model version, its queue and its loop. The decisions are the pure
 * batcher's; the lane owns the timer, the instances' load and each request until the worker has answered it. It decides
 * once per turn of the event loop, after everything readable in that turn has arrived.
 *
 * Invariant: each envelope ends exactly once: answered by the worker, answered here with an error, or dropped because its
 * client left, it has been given up by its gateway, or it turned out to be with a worker already.
 */
import { batchPolicyOf, DynamicBatcher, maxQueuedOf, type Decision } from '@paceline/core';
import { envelopeAfter, type Envelope, type LanePressure, type RequestRef, type ServingError } from '@paceline/protocol';
import type { ReleaseReason } from '@paceline/telemetry';
import type { BatchCompletion, InstanceEvent, RunningRequest } from '@paceline/worker-rpc';
import type { LaneSpec } from '../placement/lane-host.js';
import { recordSuccess, type LaneBooks } from './flight-success.js';
import { Isolation, type IsolatedState } from './isolation.js';
import { batchOf, LaneBatch } from './lane-batch.js';
import * as errors from './lane-errors.js';
import { LaneInstance, LaneInstances } from './lane-instances.js';
import { isOverdue, type LaneItem } from './lane-item.js';
import { LaneItems } from './lane-items.js';
import { LaneObjective } from './lane-objective.js';
import type { LanePorts } from './lane-ports.js';
import { LaneTimer } from './lane-timer.js';
import { queueSpan } from './queue-span.js';
import { recoverMembers } from './flight-recovery.js';
import { unfitFor } from './signature.js';

export class ModelLane {
  readonly #batcher: DynamicBatcher;
  readonly #instances: LaneInstances;
  readonly #timer: LaneTimer;
  readonly #objective: LaneObjective;
  readonly #items: LaneItems;
  readonly #books: LaneBooks;
  readonly #isolated = new Isolation();
  /** Stands for the worker's quarantine, which takes a batch at a time. */
  readonly #quarantine = new LaneInstance('quarantine');
  #flights = 0;
  #closing = false;
  #abandoned = false;
  #successor: ModelLane | undefined;
  readonly #idleWaiters: (() => void)[] = [];

  constructor(
    readonly spec: LaneSpec,
    private readonly ports: LanePorts,
  ) {
    this.#batcher = new DynamicBatcher(batchPolicyOf(spec.config, ports.queueTimeoutUs));
    this.#instances = new LaneInstances(spec.instances, {
      ordered: this.#batcher.policy.preserveOrdering,
      vary: spec.instancesVary,
      deviceOf: spec.deviceOf,
      wake: () => this.#timer.soon(),
    });
    this.#items = new LaneItems(ports.statistics);
    this.#objective = new LaneObjective(this.#batcher, ports.statistics);
    this.#books = { statistics: ports.statistics, batcher: this.#batcher, objective: this.#objective, items: this.#items };
    this.#timer = new LaneTimer(ports.clock, () => this.#turn());
  }

  /** Takes a request; a refusal goes out as its reply. */
  enqueue(envelope: Envelope): void {
    if (this.#closing)
      return this.ports.replies.send(envelope.ref, { ok: false, final: true, error: errors.notReady(envelope.model, envelope.version) });
    if (this.#items.find(envelope.ref)) return;
    const nowUs = this.ports.clock.nowUs();
    let queued = this.#batcher.enqueue(envelope, nowUs);
    if (typeof queued !== 'number' && queued.reason === 'queue_full' && this.#instances.capacity().idle > 0) {
      // What arrived in this turn of the event loop may fill the queue while instances stand idle: dispatch it first.
      this.#turn();
      queued = this.#batcher.enqueue(envelope, nowUs);
    }
    if (typeof queued !== 'number') {
      if (queued.reason === 'latency_objective') this.#objective.shed();
      const error = errors.refused(envelope, this.#objective.us, queued);
      return this.ports.replies.send(envelope.ref, { ok: false, final: true, error });
    }
    this.#items.queueNew(envelope, queued, nowUs);
    this.#timer.soon();
  }

  /**
   * The client left: a waiting request is dropped at once, an executing one is left alone.
   * @returns whether the request was here
   */
  cancel(ref: RequestRef): boolean {
    const item = this.#items.find(ref);
    if (!item) return false;
    item.cancelled = true;
    if (item.state === 'queued') this.#batcher.cancel(item.handle);
    else if (item.state === 'alone' || item.state === 'quarantined') this.#isolated.remove(item);
    else return true;
    this.#items.finish(item);
    this.#timer.soon();
    return true;
  }

  /** Takes it out where it waits for its first execution and is no later attempt. */
  withdraw({ ref, attempt }: RunningRequest): Envelope | undefined {
    const item = this.#items.find(ref);
    if (item?.state !== 'queued' || (item.envelope.attempt ?? 1) > attempt) return undefined;
    this.cancel(ref);
    return envelopeAfter(item.envelope, this.ports.clock.nowUs() - item.enqueuedUs);
  }

  onInstance(event: InstanceEvent): void {
    if (event.state === 'down') this.#instances.down(event.instance);
    else if (this.#instances.up(event.instance)) this.#timer.soon();
  }

  /** Takes no more requests; what it has is finished, under-full batches without delay. */
  close(): void {
    this.#closing = true;
    this.#batcher.drain();
    this.#timer.soon();
  }

  /** Takes no more requests and gives what waits, and whatever comes back from the worker, to `successor`. */
  handOver(successor: ModelLane): void {
    this.#closing = true;
    this.#successor = successor;
    const waiting = this.#batcher.takeAll().map((handle) => this.#items.take(handle));
    const isolated = this.#isolated.takeAll();
    for (const item of [...waiting, ...isolated]) this.#items.release(item);
    for (const item of waiting.reverse()) successor.#adopt(item, 'queued', item.enqueuedUs, this);
    for (const item of isolated) successor.#adopt(item, item.state === 'quarantined' ? 'quarantined' : 'alone', item.enqueuedUs, this);
    this.#notifyIdle();
  }

  /** Drops what waits and sends nothing for it, nor for what fails: somebody else answers for these requests now. */
  abandon(): void {
    this.#closing = this.#abandoned = true;
    const waiting = this.#batcher.takeAll().map((handle) => this.#items.take(handle));
    for (const item of [...waiting, ...this.#isolated.takeAll()]) this.#items.finish(item);
    this.#notifyIdle();
  }

  /** What it tells gateways; the bound is of all priority levels together. */
  pressure(): LanePressure {
    const { model, version } = this.spec;
    const queued = this.#batcher.size + this.#isolated.size;
    return {
      model,
      version,
      queued,
      maxQueued: maxQueuedOf(this.#batcher.policy),
      expectedWaitUs: queued && 1000 * this.#batcher.retryAfterMs,
    };
  }

  /** Resolves once nothing is queued here or with the worker. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
      this.#notifyIdle();
    });
  }

  /** A batch of this lane ended. */
  onFlightEnd(flight: LaneBatch, completion: BatchCompletion): void {
    const nowUs = this.ports.clock.nowUs();
    const { instance } = flight;
    this.#flights -= 1;
    const next = instance.remove(flight);
    // From here on each member counts as having begun; a staged one that never did is about to be requeued anyway.
    this.#begin(flight, nowUs);
    if (next && completion.outcome !== 'lost') this.#begin(next, nowUs);
    if (completion.outcome === 'refused') this.#instances.down(instance.name);
    if (completion.outcome === 'ok') recordSuccess(flight, completion, this.#books, nowUs, this.ports.clock.wallMs());
    else this.#recover(flight, completion, nowUs);
    this.#timer.soon();
    this.#notifyIdle();
  }

  #recover(flight: LaneBatch, completion: BatchCompletion, nowUs: number): void {
    const target = this.#successor ?? this;
    recoverMembers(flight, completion, {
      isDropped: (item) => item.cancelled || this.#abandoned,
      drop: (item) => this.#items.finish(item),
      refuse: (item, error) => this.#refuse(item, error),
      tryAgain: (item, state, isCounted) => {
        this.#items.release(item);
        target.#adopt(item, state, state === 'queued' && !isCounted ? item.enqueuedUs : nowUs, this);
      },
    });
  }

  /** Takes an item that another lane or a batch released: to the head of the queue, or of those that run alone. */
  #adopt(item: LaneItem, state: 'queued' | IsolatedState, sinceUs: number, from: ModelLane): void {
    const unfit = from === this ? undefined : unfitFor(item.envelope, this.spec);
    this.#items.adopt(item);
    if (unfit) return this.#refuse(item, errors.reloaded(item.envelope, unfit));
    if (state === 'queued') this.#items.requeue(item, this.#batcher.requeue(item.envelope, item.enqueuedUs, sinceUs));
    else {
      this.#items.setState(item, state);
      this.#isolated.addFirst(item, state);
    }
    this.#timer.soon();
  }

  /** Gives out batches until the batcher wants to wait. */
  #turn(): void {
    const nowUs = this.ports.clock.nowUs();
    this.#sendQuarantined(nowUs);
    this.#sendAlone(nowUs);
    const blocked = this.#isolated.waitingAlone > 0 || (this.#batcher.policy.preserveOrdering && this.#quarantine.batches > 0);
    let decision: Decision;
    do {
      decision = this.#batcher.decide(nowUs, blocked ? NO_CAPACITY : this.#instances.capacity());
      for (const handle of decision.expired) {
        const item = this.#items.take(handle);
        this.#objective.timedOut();
        this.#refuse(
          item,
          this.#instances.size === 0 ? errors.noInstance(item.envelope) : errors.queueTimeout(item.envelope, this.#batcher.policy),
        );
      }
      for (const handle of decision.shed) {
        const item = this.#items.take(handle);
        this.#objective.shed();
        this.#refuse(item, errors.objectiveMissed(item.envelope, this.#objective.us, this.#batcher.retryAfterMs));
      }
      if (decision.kind === 'dispatch') {
        const items = decision.handles.map((handle) => this.#items.take(handle));
        const { rows, reason, staged } = decision;
        const overdueRows = this.#items.dropOverdue(items, nowUs, (item) => staged && this.#batcher.started(item.envelope.priority));
        if (items.length > 0) this.#send(items, rows - overdueRows, reason, this.#instances.pick(staged) as LaneInstance, nowUs);
      }
    } while (decision.kind === 'dispatch');
    this.#instances.setWaiting(decision.why === 'busy');
    this.#timer.arm(decision.untilUs, decision.why !== 'stream');
    this.#notifyIdle();
  }

  #sendAlone(nowUs: number): void {
    while (this.#isolated.waitingAlone > 0 && this.#instances.capacity().idle > 0) {
      const item = this.#isolated.next('alone') as LaneItem;
      if (isOverdue(item, nowUs)) this.#items.finish(item);
      else this.#send([item], item.envelope.rows, 'isolated', this.#instances.pick(false) as LaneInstance, nowUs);
    }
  }

  /** One at a time: the next suspect must not be taken for the one that killed. */
  #sendQuarantined(nowUs: number): void {
    if (this.#quarantine.batches > 0) return;
    const item = this.#isolated.next('quarantined');
    if (item && isOverdue(item, nowUs)) {
      this.#items.finish(item);
      this.#sendQuarantined(nowUs);
    } else if (item) this.#send([item], item.envelope.rows, 'isolated', this.#quarantine, nowUs);
  }

  #send(items: LaneItem[], rows: number, reason: ReleaseReason, instance: LaneInstance, nowUs: number): void {
    const to = { instance: instance.name, quarantine: instance === this.#quarantine, reason };
    const batch = batchOf(this.spec, this.ports.dispatcher.nextId(), items, rows, to, nowUs, this.ports.tracing);
    const flight = new LaneBatch(batch, items, reason, instance, this);
    this.#flights += 1;
    instance.lastUsedUs = nowUs;
    instance.add(flight);
    if (instance.flights.length === 1) this.#begin(flight, nowUs);
    else for (const item of items) this.#items.setState(item, 'staged');
    this.ports.dispatcher.execute(flight);
  }

  #begin(flight: LaneBatch, nowUs: number): void {
    if (flight.startedUs !== undefined) return;
    flight.startedUs = nowUs;
    for (const item of flight.items) {
      if (item.state === 'staged') this.#batcher.started(item.envelope.priority);
      this.#items.setState(item, 'running');
    }
  }

  #refuse(item: LaneItem, error: ServingError): void {
    const { tracing, clock } = this.ports;
    if (tracing) queueSpan(tracing, item, { error }, clock.nowUs());
    this.#items.finish(item);
    this.ports.replies.send(item.envelope.ref, { ok: false, final: true, error });
  }

  #notifyIdle(): void {
    if (!this.#closing && this.#idleWaiters.length === 0) return;
    if (this.#flights + this.#batcher.size + this.#isolated.size > 0) return;
    this.#timer.cancel();
    if (this.#closing) this.#instances.clear();
    for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}

const NO_CAPACITY = { idle: 0, stageable: 0 } as const;
