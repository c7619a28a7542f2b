/** For tests: the inference service before a queue that the test answers, on a clock that it moves. */
import { FakeClock } from '@paceline/clock/testing';
import type { InferRequest } from '@paceline/protocol';
import { StatisticsRegistry } from '@paceline/telemetry';
import { InferService, type InferLimits } from '../infer/infer-service.js';
import { catalogOf, fakeModel, FakeQueue } from './fake-lane.js';

export const SERVICE_MODELS = [
  fakeModel({ name: 'plain', inputs: [['IN', 'FP32', [-1, 2]]], labels: ['cat', 'dog'] }),
  fakeModel({ name: 'ordered', inputs: [['IN', 'FP32', [-1, 2]]], preserveOrdering: true }),
  fakeModel({ name: 'half', inputs: [['IN', 'FP16', [-1, 2]]] }),
];

/** A request of one row, with 1 and 2. */
export function oneRow(modelName: string, more: Partial<InferRequest> = {}): InferRequest {
  const data = new Uint8Array(new Float32Array([1, 2]).buffer);
  return {
    modelName,
    modelVersion: '',
    id: '',
    parameters: {},
    inputs: [{ name: 'IN', datatype: 'FP32', shape: [1, 2], data }],
    outputs: undefined,
    ...more,
  };
}

export class ServiceRig {
  readonly clock = new FakeClock();
  readonly queue = new FakeQueue();
  readonly statistics = new StatisticsRegistry();
  service = this.#create();

  /** A new service with these limits, before the same queue. */
  start(limits: Partial<InferLimits>): void {
    this.service = this.#create(limits);
  }

  #create(limits: Partial<InferLimits> = {}): InferService {
    const { queue, statistics, clock } = this;
    return new InferService({ gateway: '0123456789abcdef', catalog: catalogOf(...SERVICE_MODELS), queue, statistics, clock, limits });
  }

  /** Sends and collects `tag` for each frame. */
  send(log: string[], tag: string, modelName = 'plain', more: Partial<InferRequest> = {}): { number: number; cancel(): void } {
    const call = this.service.infer(oneRow(modelName, more), (frame) => log.push(frame.ok ? tag : `${tag}:${frame.error.code}`));
    return { number: this.queue.enqueued.at(-1)?.ref.number as number, cancel: () => call.cancel() };
  }
}
