import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createLogger, createMetrics, SILENT, StatisticsRegistry, type Metrics } from '@paceline/telemetry';
import { createMetricsServer, type Health, type MetricsServer } from './metrics.server.js';

describe('the metrics server', () => {
  const statistics = new StatisticsRegistry();
  const metrics = createMetrics({ statistics, processMetrics: true });
  statistics.forVersion('m', '1').recordSuccess(1e6);
  let server: MetricsServer;
  let url: string;

  const start = async (served: Metrics, health?: Health): Promise<void> => {
    server = createMetricsServer({ metrics: served, logger: createLogger(SILENT), ...(health && { health: () => health }) });
    url = `http://127.0.0.1:${await server.listen(0, '127.0.0.1')}`;
  };
  beforeEach(() => start(metrics));
  afterEach(() => server.close());

  it('answers GET /metrics in the text form of Prometheus', async () => {
    for (const path of ['/metrics', '/metrics/', '/metrics?x=1']) {
      const reply = await fetch(url + path);
      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
      const text = await reply.text();
      expect(text).toContain('nv_inference_request_success{model="m",version="1"} 1\n');
      expect(text).toMatch(/^process_cpu_seconds_total \d/m);
      expect(text).toMatch(/^process_resident_memory_bytes \d/m);
      expect(text).toMatch(/^nv_cpu_utilization \d/m);
    }
  });

  it('answers nothing else', async () => {
    const wrong = await fetch(`${url}/`);
    expect([wrong.status, await wrong.json()]).toEqual([404, { error: 'Not Found' }]);
    const posted = await fetch(`${url}/metrics`, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow'), await posted.json()]).toEqual([405, 'GET', { error: 'Method Not Allowed' }]);
  });

  it('survives a failing scrape', async () => {
    await server.close();
    await start({ contentType: '', render: () => Promise.reject(new Error('a secret')) });
    const reply = await fetch(`${url}/metrics`);
    expect(reply.status).toBe(500);
    expect(await reply.text()).not.toContain('secret');
  });

  it('answers probes where the process says how it is', async () => {
    expect((await fetch(`${url}/ready`)).status).toBe(404);
    await server.close();
    await start(metrics, { ready: false, waitsFor: ['redis'] });
    const ready = await fetch(`${url}/ready`);
    expect([ready.status, await ready.json()]).toEqual([503, { ready: false, waitsFor: ['redis'] }]);
    const live = await fetch(`${url}/live`);
    expect([live.status, await live.json()]).toEqual([200, { ready: true, waitsFor: [] }]);
    expect((await fetch(`${url}/live`, { method: 'POST' })).status).toBe(405);
  });

  it('says when its port is taken', async () => {
    const second = createMetricsServer({ metrics, logger: createLogger(SILENT) });
    await expect(second.listen(Number(new URL(url).port), '127.0.0.1')).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
