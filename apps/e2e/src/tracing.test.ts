/**
 * The trace of a request is complete and in one piece, whatever processes it went through: a collector gets the spans of
 * every stop, each under the one before it, from the embedded server and from a cluster.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  addSubModel,
  startOtlpCollector,
  temporaryModelRepository,
  type CollectedSpan,
  type OtlpCollector,
  type TemporaryRepository,
} from '@paceline/testkit';
import { startCluster } from './support/cluster-process.js';
import { GrpcInfer } from './support/grpc-infer.js';
import { startServer } from './support/server-process.js';

const VECTOR = (name: string): string => `{ name: "${name}" data_type: TYPE_INT32 dims: [ 16 ] }`;
const CONFIG = `backend: "onnxruntime"
max_batch_size: 4
input [ ${VECTOR('INPUT0')}, ${VECTOR('INPUT1')} ]
output [ ${VECTOR('OUTPUT0')}, ${VECTOR('OUTPUT1')} ]
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { max_queue_delay_microseconds: 2000000 }`;

const PATH = ['paceline.infer', 'paceline.queue', 'paceline.batch', 'paceline.execute'];

interface Served {
  readonly http: string;
  readonly grpc: string;
  stop(): Promise<number | null>;
}

interface Client {
  readonly traceId: string;
  readonly spanId: string;
  readonly header: string;
}

function client(sampled = true): Client {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, header: `00-${traceId}-${spanId}-${sampled ? '01' : '00'}` };
}

/** The spans of one trace, each under the one before it. @throws Error where one has several below it */
function chain(spans: readonly CollectedSpan[], { traceId, spanId }: Client): CollectedSpan[] {
  const ofTrace = spans.filter((span) => span.traceId === traceId);
  const found: CollectedSpan[] = [];
  for (let parent: string | undefined = spanId; parent !== undefined;) {
    const below: CollectedSpan[] = ofTrace.filter(({ parentSpanId }) => parentSpanId === parent);
    if (below.length > 1) throw new Error(`span ${parent} has ${below.length} spans below it`);
    if (below[0]) found.push(below[0]);
    parent = below[0]?.spanId;
  }
  return found;
}

function tracesOf(start: (flags: readonly string[]) => Promise<Served>, services: readonly string[]): void {
  let repository: TemporaryRepository;
  let collector: OtlpCollector;
  let served: Served | undefined;
  let grpc: GrpcInfer | undefined;

  beforeAll(async () => {
    const model = addSubModel({ datatype: 'INT32', dims: [16] });
    repository = temporaryModelRepository([{ name: 'add_sub', config: CONFIG, versions: { '1': model } }]);
    collector = await startOtlpCollector();
    const flags = [`--model-repository=${repository.root}`, `--trace-otlp-endpoint=${collector.url}`, '--trace-sample-rate=0'];
    served = await start(flags);
    grpc = new GrpcInfer(served.grpc);
  }, 60_000);

  afterAll(async () => {
    grpc?.close();
    await served?.stop();
    await collector.close();
    repository.remove();
  }, 30_000);

  const zeros = Buffer.alloc(64);
  const overGrpc = (traceparent: string, model = 'add_sub') => {
    const input = (name: string) => ({ name, datatype: 'INT32', shape: [1, 16], data: zeros }) as const;
    return grpc!.infer(model, '', [input('INPUT0'), input('INPUT1')], { traceparent });
  };
  async function overHttp(traceparent: string | undefined, columns = 16): Promise<number> {
    const input = (name: string) => ({ name, datatype: 'INT32', shape: [1, columns], data: new Array<number>(columns).fill(1) });
    const response = await fetch(`http://${served!.http}/v2/models/add_sub/infer`, {
      method: 'POST',
      body: JSON.stringify({ inputs: [input('INPUT0'), input('INPUT1')] }),
      headers: traceparent === undefined ? {} : { traceparent },
    });
    await response.arrayBuffer();
    return response.status;
  }

  it('has every stop, each under the one before it, for each request of a batch', async () => {
    const clients = [client(), client(), client()];
    const [a, b, c] = clients as [Client, Client, Client];
    const unsampled = client(false);
    const statuses = await Promise.all([overHttp(a.header), overHttp(b.header), overGrpc(c.header), overHttp(unsampled.header)]);
    expect(statuses.slice(0, 2)).toEqual([200, 200]);
    const spans = await collector.until((all) => clients.every((each) => chain(all, each).length === PATH.length));
    const chains = clients.map((each) => chain(spans, each));
    for (const each of chains) {
      expect(each.map(({ name }) => name)).toEqual(PATH);
      expect(each.map(({ service }) => service)).toEqual(services);
      expect(each.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
      const [infer, queue, batch, execute] = each as [CollectedSpan, CollectedSpan, CollectedSpan, CollectedSpan];
      expect(infer.attributes).toMatchObject({ 'paceline.model': 'add_sub', 'paceline.version': '1', 'paceline.batch_rows': 4 });
      expect(queue.attributes).toMatchObject({
        'paceline.batch_requests': 4,
        'paceline.release_reason': 'full',
        'paceline.losses': 0,
      });
      expect(batch.attributes).toMatchObject({ 'paceline.batch_rows': 4, 'paceline.batch_requests': 4 });
      // One clock drives all on this machine: nothing ends before it began, and what is inside lies inside.
      for (const span of each) expect(span.endNs).toBeGreaterThanOrEqual(span.startNs);
      expect(queue.startNs).toBeGreaterThanOrEqual(infer.startNs - 2_000_000n);
      expect(execute.startNs).toBeGreaterThanOrEqual(batch.startNs);
      expect(execute.endNs).toBeLessThanOrEqual(batch.endNs);
      expect(infer.endNs).toBeGreaterThanOrEqual(execute.endNs - 2_000_000n);
      const others = chains.filter((other) => other !== each).map(([, queued]) => queued!.spanId);
      expect(new Set(batch.links)).toEqual(new Set(others));
    }
    // What its client or the rate left out is in no trace.
    expect(spans.filter(({ traceId }) => traceId === unsampled.traceId)).toEqual([]);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(3);
  });

  it('ends where a request is refused, with the reason', async () => {
    const wrong = client();
    expect(await overHttp(wrong.header, 5)).toBe(400);
    const unknown = client();
    await expect(overGrpc(unknown.header, 'nobody')).rejects.toThrow('nobody');
    const spans = await collector.until((all) => chain(all, wrong).length === 1);
    const [refused] = chain(spans, wrong);
    expect(refused).toMatchObject({ name: 'paceline.infer', status: 2, kind: 2 });
    expect(refused?.attributes['paceline.code']).toBe('INVALID_ARGUMENT');
  });

  it('is not there for a request without a context, by the rate of none', async () => {
    const before = collector.spans.length;
    const marker = client();
    // The marker fills the batch, so its spans come when the others' would have come.
    const answers = await Promise.all([overHttp(undefined), overHttp(undefined), overHttp(undefined), overHttp(marker.header)]);
    expect(answers).toEqual([200, 200, 200, 200]);
    const spans = await collector.until((all) => chain(all, marker).length === PATH.length);
    expect(new Set(spans.slice(before).map(({ traceId }) => traceId))).toEqual(new Set([marker.traceId]));
  });

  it('is complete at the end of the processes: what waits is sent', async () => {
    const last = client();
    await Promise.all([overHttp(undefined), overHttp(undefined), overHttp(undefined), overHttp(last.header)]);
    expect(await served!.stop()).toBe(0);
    expect(chain(collector.spans, last).map(({ name }) => name)).toEqual(PATH);
  });
}

describe('a trace through the embedded server', () => {
  tracesOf(startServer, ['paceline', 'paceline', 'paceline', 'paceline']);
});

describe('a trace through a cluster', () => {
  tracesOf(
    async (flags) => {
      const cluster = await startCluster(['--gateways=1', '--schedulers=1', '--workers=1', ...flags]);
      return { http: cluster.http[0]!, grpc: cluster.grpc[0]!, stop: () => cluster.stop() };
    },
    ['paceline-gateway', 'paceline-scheduler', 'paceline-worker', 'paceline-worker'],
  );
});
