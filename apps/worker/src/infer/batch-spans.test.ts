/** The spans of a batch: a chain for each traced request, links to the others, and the run inside the batch. */
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { ServingError } from '@paceline/protocol';
import { RecordedTracing } from '@paceline/telemetry/testing';
import { addSubModel, slowModel } from '@paceline/testkit';
import type { Batch } from '@paceline/worker-rpc';
import { fp32, int64 } from '../testing/samples.js';
import { WorkerFixture } from '../testing/worker-fixture.js';
import { batchSpans } from './batch-spans.js';

jest.setTimeout(60_000);

function batchOf(...parents: (string | undefined)[]): Batch {
  const members = parents.map((traceParent, number) => ({
    ref: { gateway: '00000000000000aa', number },
    rows: 1,
    inputs: [],
    outputs: [],
    queueNs: 0,
    ...(traceParent !== undefined && { traceParent }),
  }));
  return { id: 1, model: 'm', version: '1', generation: 1, instance: 'm_0', rows: members.length, members };
}

describe('the spans of a batch', () => {
  test('there are none where no request is traced', () => {
    const tracing = new RecordedTracing();
    batchSpans(tracing, batchOf(undefined, undefined), { givenUs: 0, endUs: 1 });
    expect(tracing.spans).toEqual([]);
  });

  test('each traced request has its own, with links to the others', () => {
    const tracing = new RecordedTracing();
    batchSpans(tracing, batchOf('a', undefined, 'b'), { givenUs: 10, beganUs: 15, run: { startUs: 20, endUs: 30 }, endUs: 40 });
    expect(tracing.summary).toEqual([
      'paceline.batch under a: ok',
      'paceline.execute under span-1: ok',
      'paceline.batch under b: ok',
      'paceline.execute under span-3: ok',
    ]);
    expect(tracing.spans[0]).toMatchObject({ startUs: 10, end: { endUs: 40 }, links: ['b'] });
    expect(tracing.spans[0]?.attributes).toMatchObject({ 'paceline.batch_requests': 3, 'paceline.staged_us': 5 });
    expect(tracing.spans[1]).toMatchObject({ startUs: 20, end: { endUs: 30 } });
    expect(tracing.spans[2]?.links).toEqual(['a']);
  });

  test('a large batch does not link all with all', () => {
    const tracing = new RecordedTracing();
    const parents = Array.from({ length: 100 }, (_, i) => `parent-${i}`);
    batchSpans(tracing, batchOf(...parents), { givenUs: 0, endUs: 1 });
    expect(tracing.spans).toHaveLength(100);
    for (const { links, parent } of tracing.spans) {
      expect(links).toHaveLength(32);
      expect(links).not.toContain(parent);
    }
  });

  test('a batch that failed has no run', () => {
    const tracing = new RecordedTracing();
    batchSpans(tracing, batchOf('a'), { givenUs: 0, endUs: 1 }, new ServingError('UNAVAILABLE', 'gone', { reason: 'instance_lost' }));
    expect(tracing.summary).toEqual(['paceline.batch under a: instance_lost']);
  });
});

describe('of a worker with real hosts', () => {
  let fixture: WorkerFixture | undefined;
  afterEach(() => fixture?.close());

  test('a batch that ran, and one whose host was killed', async () => {
    const tracing = new RecordedTracing();
    fixture = new WorkerFixture({ tracing });
    const vector = (name: string) => [name, 'FP32', [-1, 4]] as const;
    const spec = await fixture.load('add_sub', {
      onnx: addSubModel({ datatype: 'FP32', dims: [4] }),
      inputs: [vector('INPUT0'), vector('INPUT1')],
      outputs: [vector('OUTPUT0'), vector('OUTPUT1')],
    });
    const values = [1, 2, 3, 4];
    const inputs = [fp32('INPUT0', [1, 4], values), fp32('INPUT1', [1, 4], values)];
    await fixture.run(spec, [{ ...fixture.member(inputs, ['OUTPUT0']), traceParent: 'a' }]);
    expect(tracing.summary).toEqual(['paceline.batch under a: ok', 'paceline.execute under span-1: ok']);
    const [batch, execute] = tracing.spans;
    expect(execute!.startUs).toBeGreaterThanOrEqual(batch!.startUs);
    expect(execute!.end!.endUs).toBeGreaterThan(execute!.startUs);
    expect(execute!.end!.endUs).toBeLessThanOrEqual(batch!.end!.endUs);

    const slow = await fixture.load('slow', {
      onnx: slowModel(),
      inputs: [
        ['INPUT0', 'FP32', [-1, 1]],
        ['ITERS', 'INT64', [-1, 1]],
      ],
      outputs: [['OUTPUT0', 'FP32', [-1, 1]]],
    });
    const member = fixture.member([fp32('INPUT0', [1, 1], [1]), int64('ITERS', [1, 1], [50_000_000n])], ['OUTPUT0']);
    const completion = fixture.run(slow, [{ ...member, traceParent: 'b' }]);
    for (const pid of fixture.worker.hostPids()) process.kill(pid, 'SIGKILL');
    expect((await completion).outcome).toBe('lost');
    expect(tracing.summary.slice(2)).toEqual(['paceline.batch under b: instance_lost']);
  });
});
