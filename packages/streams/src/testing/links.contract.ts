/** What every adapter of {@link GatewayLinks}, {@link SchedulerLinks} and {@link WorkerLinks} promises. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import {
  ServingError,
  type GatewayMessage,
  type Member,
  type ReplyFrame,
  type SchedulerMessage,
  type ServedModel,
} from '@paceline/protocol';
import type { Tensor } from '@paceline/tensor';
import type { GatewayLinkListener, GatewayLinks, SchedulerLinkListener, SchedulerLinks, WorkerLinks } from '../link/ports.js';
import { GatewayReports, SchedulerReports } from './link-reports.js';
import { counters, routingOf, servedModel } from './routings.js';

/** Makes the ends of the adapter under test; whatever it starts ends with the `close` of each end. */
export interface LinkFactory {
  gateway(id: string, listener: GatewayLinkListener): GatewayLinks;
  scheduler(id: string, listener: SchedulerLinkListener): SchedulerLinks;
  worker(id: string): WorkerLinks;
  /** Resolves once `condition` holds. */
  until(what: string, condition: () => boolean): Promise<void>;
}

const A = 'aaaaaaaaaaaaaaaa';
const B = 'bbbbbbbbbbbbbbbb';
const S = 'cccccccccccccccc';
const W = 'dddddddddddddddd';

const tensor = (bytes: number, fill: number): Tensor => ({
  name: 'T',
  datatype: 'UINT8',
  shape: [1, bytes],
  data: new Uint8Array(bytes).fill(fill),
});
/** Comparing large byte arrays item by item would take seconds. */
const plain = ({ data, ...rest }: Tensor): object => ({ ...rest, data: createHash('sha256').update(data).digest('hex') });
const result = (index: number, bytes: number): ReplyFrame => ({
  ok: true,
  index,
  final: false,
  outputs: [tensor(bytes, index)],
  timings: { queueNs: 1, computeInputNs: 2, computeInferNs: 3, computeOutputNs: 4, batchRows: 5 },
});

export function describeLinks(name: string, create: () => LinkFactory): void {
  describe(`links contract: ${name}`, () => {
    let factory: LinkFactory;
    let reports: Map<string, GatewayReports>;
    let gateways: Map<string, GatewayLinks>;
    let members: Member[];
    let atScheduler: SchedulerReports;
    let scheduler: SchedulerLinks;
    let worker: WorkerLinks;

    const join = async (id: string): Promise<GatewayReports> => {
      const report = new GatewayReports();
      const links = factory.gateway(id, report);
      const { host, port } = await links.listen('127.0.0.1', 0);
      gateways.set(id, links);
      reports.set(id, report);
      members = [...members, { role: 'gateway', id, address: `${host}:${port}`, draining: false }];
      scheduler.setMembers([...members, { role: 'worker', id: W, address: '127.0.0.1:1', draining: false }]);
      worker.setMembers(members);
      await factory.until('everybody is connected', () => scheduler.gateways.includes(id) && worker.gateways.includes(id));
      await factory.until('the gateway knows', () => links.schedulers.includes(S) && links.workers.includes(W));
      return report;
    };

    beforeEach(async () => {
      factory = create();
      reports = new Map();
      gateways = new Map();
      members = [];
      atScheduler = new SchedulerReports();
      scheduler = factory.scheduler(S, atScheduler);
      worker = factory.worker(W);
      await join(A);
      await join(B);
    });
    afterEach(async () => {
      await worker.close();
      await scheduler.close();
      for (const links of gateways.values()) await links.close();
    });

    test('who is connected is known at both ends', () => {
      expect([[...scheduler.gateways].sort(), [...worker.gateways].sort()]).toEqual([
        [A, B],
        [A, B],
      ]);
      expect([...atScheduler.ups].sort()).toEqual([A, B]);
      expect(reports.get(A)!.ups).toEqual([S]);
      expect([gateways.get(B)!.schedulers, gateways.get(B)!.workers]).toEqual([[S], [W]]);
    });

    test('replies reach the gateway of the request, the frames of one request in order, however large', async () => {
      worker.send({ gateway: A, number: 0 }, result(0, 100_000));
      worker.send({ gateway: A, number: 0 }, result(1, 3));
      worker.send({ gateway: A, number: 0 }, result(2, 70_000));
      worker.send({ gateway: A, number: 0 }, { ok: true, index: 3, final: true, outputs: [], timings: undefined });
      worker.send({ gateway: B, number: 9_007_199_254_740_000 }, result(7, 600));
      scheduler.send(
        { gateway: B, number: 2 },
        { ok: false, final: true, error: new ServingError('RESOURCE_EXHAUSTED', 'full', { reason: 'queue_full', retryAfterMs: 3 }) },
      );
      await worker.flush(5000);
      await factory.until('all have arrived', () => reports.get(A)!.frames.length === 4 && reports.get(B)!.frames.length === 2);
      expect(reports.get(A)!.frames).toEqual([
        [0, result(0, 100_000)],
        [0, result(1, 3)],
        [0, result(2, 70_000)],
        [0, { ok: true, index: 3, final: true, outputs: [], timings: undefined }],
      ]);
      const atB = new Map(reports.get(B)!.frames);
      expect(atB.get(9_007_199_254_740_000)).toEqual(result(7, 600));
      expect(atB.get(2)).toMatchObject({ ok: false, error: { code: 'RESOURCE_EXHAUSTED', reason: 'queue_full', retryAfterMs: 3 } });
    });

    test('a frame for a gateway that is not a member yet waits for it', async () => {
      const late = 'eeeeeeeeeeeeeeee';
      worker.send({ gateway: late, number: 1 }, result(0, 10));
      worker.lost({ gateway: late, number: 2 }, 1, true, new ServingError('UNAVAILABLE', 'lost'));
      const report = await join(late);
      await factory.until('both have arrived', () => report.frames.length === 1 && report.lost.length === 1);
    });

    test('a lost request is told with its attempt', async () => {
      worker.lost({ gateway: A, number: 4 }, 2, false, new ServingError('UNAVAILABLE', 'the host died', { reason: 'instance_lost' }));
      await factory.until('it is known', () => reports.get(A)!.lost.length === 1);
      const [number, attempt, started, error] = reports.get(A)!.lost[0]!;
      expect([number, attempt, started, error.code, error.reason, error.message]).toEqual([
        4,
        2,
        false,
        'UNAVAILABLE',
        'instance_lost',
        'the host died',
      ]);
    });

    test.each([10, 100_000, 3_000_000])('tensors of %i bytes are pulled', async (bytes) => {
      const tensors = [tensor(bytes, 3), { ...tensor(2, 9), name: 'U' }];
      reports.get(A)!.tensors.set(5, tensors);
      const pulled = await worker.pull({ gateway: A, number: 5 });
      expect(pulled.map(plain)).toEqual(tensors.map(plain));
    });

    test('a pull of what is gone says so, and harms no other', async () => {
      reports.get(A)!.tensors.set(1, [tensor(5, 5)]);
      const [gone, found] = await Promise.allSettled([worker.pull({ gateway: A, number: 6 }), worker.pull({ gateway: A, number: 1 })]);
      expect(gone).toMatchObject({ status: 'rejected', reason: { code: 'CANCELLED', reason: 'request_gone' } });
      expect(found.status).toBe('fulfilled');
    });

    test('control messages pass whole and in order, in both directions', async () => {
      const epoch = { number: 7, owner: '0123456789abcdef' };
      const toGateway: SchedulerMessage[] = [
        { kind: 'owns', partition: 3, epoch },
        { kind: 'routing', routing: routingOf([servedModel('m', '1', 5000), servedModel('n', '2', 1)], epoch) },
        { kind: 'pressure', lanes: [{ model: 'm', version: '1', queued: 5, maxQueued: Infinity, expectedWaitUs: 1.5 }] },
        { kind: 'statistics', process: W, versions: [counters(1), counters(0), counters(3)] },
        { kind: 'control-progress', id: 1, text: 'loading 1 of 2' },
        { kind: 'control-result', id: 1, error: undefined },
        {
          kind: 'lost',
          requests: [
            { number: 9_007_199_254_740_000, attempt: 1 },
            { number: 0, attempt: 300 },
          ],
        },
        { kind: 'lost', requests: [] },
        { kind: 'released', partition: 3, epoch },
      ];
      for (const message of toGateway) scheduler.tell(A, message);
      await factory.until('the gateway has them', () => reports.get(A)!.told.length === toGateway.length);
      expect(reports.get(A)!.told).toEqual(toGateway.map((message) => [S, message]));
      scheduler.broadcast({ kind: 'control-result', id: 2, error: new ServingError('NOT_FOUND', 'no such model') });
      await factory.until('both have it', () => reports.get(A)!.told.length === toGateway.length + 1 && reports.get(B)!.told.length === 1);
      expect(reports.get(B)!.told[0]![1]).toMatchObject({ kind: 'control-result', id: 2, error: { code: 'NOT_FOUND' } });

      const toScheduler: GatewayMessage[] = [
        { kind: 'cancel', number: 12, model: 'm', version: '1' },
        { kind: 'routed', epoch, generation: 9 },
        { kind: 'statistics', versions: [counters(2)] },
        { kind: 'overtaken', partition: 3, epoch },
        {
          kind: 'control',
          id: 4,
          operation: 'load',
          model: 'm',
          unloadDependents: true,
          parameters: {
            config: '{}',
            count: -12345678901234567890n,
            flag: true,
            off: false,
            'file:1/model.onnx': new Uint8Array(70_000).fill(1),
          },
        },
        { kind: 'control', id: 5, operation: 'unload', model: 'm', unloadDependents: false, parameters: {} },
      ];
      for (const message of toScheduler) gateways.get(A)!.tell(S, message);
      await factory.until('the scheduler has them', () => atScheduler.told.length === toScheduler.length);
      expect(atScheduler.told).toEqual(toScheduler.map((message) => [A, message]));
    });

    test('a model that is routed again unchanged is the same object, another load of it is not', async () => {
      const model = servedModel('m', '1', 3);
      const epoch = { number: 1, owner: S };
      const models = (): ServedModel[] =>
        reports.get(A)!.told.map(([, message]) => (message.kind === 'routing' ? message.routing.models[0]!.model : model));
      for (const routed of [model, model, servedModel('m', '1', 4)])
        scheduler.tell(A, { kind: 'routing', routing: routingOf([routed], epoch) });
      await factory.until('all have arrived', () => reports.get(A)!.told.length === 3);
      expect(models()[1]).toBe(models()[0]);
      expect(models()[2]).not.toBe(models()[0]);
    });

    test('a gateway that closes is gone for both, and what is told to nobody is dropped', async () => {
      await gateways.get(B)!.close();
      await factory.until('all know', () => !scheduler.gateways.includes(B) && !worker.gateways.includes(B));
      expect(atScheduler.downs).toEqual([B]);
      gateways.get(A)!.tell('ffffffffffffffff', { kind: 'cancel', number: 1, model: 'm', version: '1' });
      scheduler.tell(B, { kind: 'control-progress', id: 1, text: 'x' });
      await scheduler.close();
      await factory.until('the gateway knows', () => reports.get(A)!.downs.length === 1);
      expect([reports.get(A)!.downs, gateways.get(A)!.schedulers]).toEqual([[S], []]);
    });
  });
}
