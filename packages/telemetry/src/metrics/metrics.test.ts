import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { StatisticsRegistry } from '../statistics.js';
import { registerHostMetrics } from './host-metrics.js';
import { createMetrics } from './metrics.js';

/** Series by name and labels, and families by type. */
function parse(text: string): { series: Map<string, number>; types: Map<string, string> } {
  const series = new Map<string, number>();
  const types = new Map<string, string>();
  for (const line of text.split('\n')) {
    if (line.startsWith('# TYPE ')) types.set(line.split(' ')[2]!, line.split(' ')[3]!);
    else if (line !== '' && !line.startsWith('#'))
      series.set(line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1)));
  }
  return { series, types };
}

describe('metrics', () => {
  it('show a loaded model at once, with every reason at zero', async () => {
    const statistics = new StatisticsRegistry();
    const metrics = createMetrics({ statistics, processMetrics: false });
    statistics.forVersion('m', '1').loadDurationMs = 250;
    const { series, types } = parse(await metrics.render());
    expect(Object.fromEntries(series)).toEqual({
      'nv_inference_request_success{model="m",version="1"}': 0,
      'nv_inference_count{model="m",version="1"}': 0,
      'nv_inference_exec_count{model="m",version="1"}': 0,
      'nv_inference_request_duration_us{model="m",version="1"}': 0,
      'nv_inference_queue_duration_us{model="m",version="1"}': 0,
      'nv_inference_compute_input_duration_us{model="m",version="1"}': 0,
      'nv_inference_compute_infer_duration_us{model="m",version="1"}': 0,
      'nv_inference_compute_output_duration_us{model="m",version="1"}': 0,
      'nv_inference_pending_request_count{model="m",version="1"}': 0,
      'nv_model_load_duration_secs{model="m",version="1"}': 0.25,
      'paceline_received_requests_total{model="m",version="1"}': 0,
      'paceline_in_flight_requests{model="m",version="1"}': 0,
      'paceline_in_flight_bytes{model="m",version="1"}': 0,
      'paceline_queue_requests{model="m",version="1"}': 0,
      'paceline_queue_rows{model="m",version="1"}': 0,
      ...Object.fromEntries(
        ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'].map((reason) => [
          `nv_inference_request_failure{model="m",version="1",reason="${reason}"}`,
          0,
        ]),
      ),
      ...Object.fromEntries(
        ['full', 'preferred', 'delay', 'shape', 'drain', 'isolated'].map((reason) => [
          `paceline_batch_release_total{model="m",version="1",reason="${reason}"}`,
          0,
        ]),
      ),
    });
    expect(types.get('nv_inference_count')).toBe('counter');
    expect(types.get('nv_inference_pending_request_count')).toBe('gauge');
    expect(types.get('paceline_queue_duration_seconds')).toBe('histogram');
  });

  it('add up what happened', async () => {
    const statistics = new StatisticsRegistry();
    const metrics = createMetrics({ statistics, processMetrics: false });
    const s = statistics.forVersion('m', '1');
    s.recordExecution({ rows: 2, reason: 'full', computeInputNs: 1000, computeInferNs: 2000, computeOutputNs: 3000 }, 5);
    s.recordExecution({ rows: 3, reason: 'delay', computeInputNs: 1000, computeInferNs: 2000, computeOutputNs: 3000 }, 6);
    for (const queueNs of [100_000, 100_001, 70e9])
      s.recordStages({ queueNs, computeInputNs: 1000, computeInferNs: 2000, computeOutputNs: 3000 });
    s.recordSuccess(1_500_000);
    s.recordFailure('BACKEND', 9, 'model_failed');
    s.pendingRequests = 4;
    const { series } = parse(await metrics.render());
    const get = (name: string, more = ''): number | undefined => series.get(`${name}{model="m",version="1"${more}}`);
    expect(get('nv_inference_count')).toBe(5);
    expect(get('nv_inference_exec_count')).toBe(2);
    expect(get('nv_inference_request_success')).toBe(1);
    expect(get('nv_inference_request_failure', ',reason="BACKEND"')).toBe(1);
    expect(get('nv_inference_request_duration_us')).toBe(1500);
    expect(get('nv_inference_compute_infer_duration_us')).toBe(6);
    expect(get('nv_inference_pending_request_count')).toBe(4);
    const bucket = (stage: string, le: string): number | undefined =>
      series.get(`paceline_${stage}_bucket{model="m",version="1",le="${le}"}`);
    expect([
      bucket('queue_duration_seconds', '0.0001'),
      bucket('queue_duration_seconds', '0.00025'),
      bucket('queue_duration_seconds', '60'),
      bucket('queue_duration_seconds', '+Inf'),
    ]).toEqual([1, 2, 2, 3]);
    expect(get('paceline_queue_duration_seconds_count')).toBe(3);
    expect(get('paceline_queue_duration_seconds_sum')).toBeCloseTo(70.0002, 4);
    expect([bucket('request_duration_seconds', '0.001'), bucket('request_duration_seconds', '0.0025')]).toEqual([0, 1]);
    expect([bucket('batch_size', '1'), bucket('batch_size', '2'), bucket('batch_size', '4'), bucket('batch_size', '+Inf')]).toEqual([
      0, 1, 2, 2,
    ]);
    expect(get('paceline_batch_size_sum')).toBe(5);
    expect(get('paceline_batch_release_total', ',reason="delay"')).toBe(1);
  });

  it('forget a model that was removed, and start again with one that came back', async () => {
    const statistics = new StatisticsRegistry();
    const metrics = createMetrics({ statistics, processMetrics: false });
    statistics.forVersion('m', '1').recordSuccess(1e6);
    statistics.forVersion('n', '1').recordSuccess(1e6);
    statistics.remove('m', '1');
    expect(await metrics.render()).not.toContain('model="m"');
    expect(parse(await metrics.render()).series.get('paceline_request_duration_seconds_count{model="n",version="1"}')).toBe(1);
    statistics.forVersion('m', '1').recordSuccess(1e6);
    expect(parse(await metrics.render()).series.get('paceline_request_duration_seconds_count{model="m",version="1"}')).toBe(1);
  });

  it('label a model with its tags', async () => {
    const statistics = new StatisticsRegistry();
    const metrics = createMetrics({
      statistics,
      processMetrics: false,
      tagsOf: (model) => (model === 'm' ? { 'team-name': 'blue "b"' } : undefined),
    });
    statistics.forVersion('m', '1');
    statistics.forVersion('n', '1');
    const { series } = parse(await metrics.render());
    expect(series.get('nv_inference_count{model="m",version="1",_team_name="blue \\"b\\""}')).toBe(0);
    expect(series.get('nv_inference_count{model="n",version="1"}')).toBe(0);
  });

  it('tell where every request is, also of those that named no model', async () => {
    const statistics = new StatisticsRegistry();
    const metrics = createMetrics({ statistics, processMetrics: false });
    const s = statistics.forVersion('m', '1');
    s.openFlight(100);
    s.openFlight(20);
    s.closeFlight(100);
    s.recordFailure('OTHER', 5, 'request_timeout');
    s.recordRefusal('input_shape_mismatch');
    s.recordRestart('hung');
    s.pendingRows = 7;
    statistics.unknownModel.recordRefusal('unknown_model');
    statistics.instanceMemory = () => [
      { model: 'm', version: '1', instance: 'm_0_0', residentBytes: 4096 },
      // Of a model whose requests are counted elsewhere, as in a worker of a cluster.
      { model: 'elsewhere', version: '1', instance: 'elsewhere_0_0', residentBytes: 8192 },
    ];
    const { series } = parse(await metrics.render());
    const found = Object.fromEntries([...series].filter(([name, value]) => name.startsWith('paceline_') && value > 0));
    expect(found).toEqual({
      'paceline_received_requests_total{model="m",version="1"}': 3,
      'paceline_received_requests_total{model="",version=""}': 1,
      'paceline_in_flight_requests{model="m",version="1"}': 1,
      'paceline_in_flight_bytes{model="m",version="1"}': 20,
      'paceline_queue_rows{model="m",version="1"}': 7,
      'paceline_failed_requests_total{model="m",version="1",reason="request_timeout"}': 1,
      'paceline_refused_requests_total{model="m",version="1",reason="input_shape_mismatch"}': 1,
      'paceline_refused_requests_total{model="",version="",reason="unknown_model"}': 1,
      'paceline_instance_restarts_total{model="m",version="1",reason="hung"}': 1,
      'paceline_instance_memory_bytes{model="m",version="1",instance="m_0_0"}': 4096,
      'paceline_instance_memory_bytes{model="elsewhere",version="1",instance="elsewhere_0_0"}': 8192,
    });
  });

  it('show all counters of one moment, whatever happens while they are written', async () => {
    const statistics = new StatisticsRegistry();
    const metrics = createMetrics({ statistics, processMetrics: false });
    const s = statistics.forVersion('m', '1');
    let ended = 0;
    const busy = setInterval(() => {
      ended += 1;
      s.openFlight(1);
      s.openFlight(1);
      s.closeFlight(1);
      s.recordSuccess(1);
    });
    const load = (): void => {
      if (ended < 0) return;
      s.openFlight(1);
      s.closeFlight(1);
      s.recordFailure('OTHER', 1, 'request_timeout');
      setImmediate(load);
    };
    load();
    const before = s.received;
    const { series } = parse(await metrics.render());
    ended = -1;
    clearInterval(busy);
    expect(s.received).toBeGreaterThan(before);
    const get = (name: string, more = ''): number => series.get(`${name}{model="m",version="1"${more}}`) ?? 0;
    expect(get('paceline_received_requests_total')).toBe(
      get('nv_inference_request_success') +
        get('paceline_failed_requests_total', ',reason="request_timeout"') +
        get('paceline_in_flight_requests'),
    );
  });

  it('show the server only where there is something to read', async () => {
    const metrics = createMetrics({
      statistics: new StatisticsRegistry(),
      processMetrics: false,
      server: { connections: () => ({ http: 3, grpc: 1 }), accessLog: { writtenLines: 9, droppedLines: 2 } },
    });
    const { series, types } = parse(await metrics.render());
    expect(Object.fromEntries(series)).toEqual({
      'paceline_connections{protocol="http"}': 3,
      'paceline_connections{protocol="grpc"}': 1,
      paceline_access_log_lines_total: 9,
      paceline_access_log_dropped_lines_total: 2,
    });
    expect(types.has('paceline_buffered_body_bytes')).toBe(false);
  });

  it('have the latency families that were asked for', async () => {
    const statistics = new StatisticsRegistry();
    const metrics = createMetrics({ statistics, processMetrics: false, latencies: { counters: false, summaryQuantiles: [0.5, 0.99] } });
    statistics.forVersion('m', '1').recordSuccess(2_000_000);
    const { series, types } = parse(await metrics.render());
    expect([...types.keys()].filter((name) => name.endsWith('_duration_us'))).toEqual([]);
    expect([...types].filter(([, type]) => type === 'summary').map(([name]) => name)).toEqual(
      ['request', 'queue', 'compute_input', 'compute_infer', 'compute_output'].map((stage) => `nv_inference_${stage}_summary_us`),
    );
    expect(series.get('nv_inference_request_summary_us{model="m",version="1",quantile="0.99"}')).toBe(2000);
    expect(series.get('nv_inference_request_summary_us_sum{model="m",version="1"}')).toBe(2000);
    expect(series.get('nv_inference_request_summary_us_count{model="m",version="1"}')).toBe(1);
    expect(series.get('nv_inference_queue_summary_us{model="m",version="1",quantile="0.5"}')).toBeNaN();
    // Histograms are filled beside them.
    expect(series.get('paceline_request_duration_seconds_count{model="m",version="1"}')).toBe(1);
  });

  it('tell how busy the machine was since the last scrape', async () => {
    const registry = new Registry();
    const readings = [
      { busyMs: 100, totalMs: 1000 },
      { busyMs: 250, totalMs: 1200 },
      { busyMs: 250, totalMs: 1200 },
    ];
    registerHostMetrics(registry, () => readings.shift()!);
    expect(parse(await registry.metrics()).series.get('nv_cpu_utilization')).toBe(0.75);
    const again = parse(await registry.metrics()).series;
    expect(again.get('nv_cpu_utilization')).toBe(0.75);
    expect(again.get('nv_cpu_memory_used_bytes')).toBeGreaterThan(0);
    expect(again.get('nv_cpu_memory_used_bytes')).toBeLessThan(again.get('nv_cpu_memory_total_bytes')!);
  });
});
