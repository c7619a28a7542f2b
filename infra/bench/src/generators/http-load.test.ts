// The property that makes the open loop honest: while the server stalls, every request that falls due is charged for it,
// although nothing could be sent. And failures are counted, never dropped.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { TINY } from '../models/catalog.js';
import { conversationTimesMs } from '../trace.js';
import { httpClosedLoad } from './http-closed.load.js';
import { httpOpenLoad } from './http-open.load.js';

let server: Server;

async function serve(listener: RequestListener): Promise<number> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function answer(response: Parameters<RequestListener>[1], status = 200): void {
  response.writeHead(status, { 'content-length': 2 }).end('{}');
}

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const PLAN = { model: TINY.name, form: 'json', warmupMs: 50, measureMs: 400 } as const;

describe('open loop', () => {
  test('a stall is charged to every request that was due meanwhile', async () => {
    const stallMs = 300;
    let stallEndsAtMs: number | undefined;
    const port = await serve((request, response) => {
      request.resume();
      stallEndsAtMs ??= performance.now() + stallMs;
      const leftMs = stallEndsAtMs - performance.now();
      if (leftMs > 0) setTimeout(() => answer(response), leftMs);
      else answer(response);
    });
    // Two connections: all but two of the stalled requests cannot even be sent.
    const result = await httpOpenLoad({ ...PLAN, kind: 'http-open', port, maxConnections: 2, ratePerS: 400, seed: 5 }, () => undefined);
    expect(result.failed).toBe(0);
    expect(result.answered).toBeGreaterThan(100);
    // Due evenly over the stall, the stalled requests waited half of it on average; they are most of the window.
    expect(result.latency.p50Ms).toBeGreaterThan(stallMs / 6);
    expect(result.latency.maxMs).toBeGreaterThan(stallMs * 0.8);
    expect(result.sendLag?.maxMs).toBeGreaterThan(stallMs * 0.8);
  });

  test('counts refusals beside answers where the plan allows them, and as outside the objective', async () => {
    let asked = 0;
    const port = await serve((request, response) => {
      request.resume();
      answer(response, asked++ % 2 === 0 ? 200 : 429);
    });
    const plan = { ...PLAN, kind: 'http-open', port, maxConnections: 8, ratePerS: 400, seed: 5, objectiveMs: 300 } as const;
    const result = await httpOpenLoad({ ...plan, mayRefuse: true }, () => undefined);
    expect(result.failed).toBe(0);
    expect(result.answered).toBeGreaterThan(40);
    expect(result.refused?.count).toBeGreaterThan(40);
    expect(result.withinObjective).toBeGreaterThan(0.4);
    expect(result.withinObjective).toBeLessThan(0.6);
    expect((await httpOpenLoad(plan, () => undefined)).firstFailure).toBe('HTTP 429');
  });

  test('follows the conversation trace at the rate that is asked for', async () => {
    const port = await serve((request, response) => {
      request.resume();
      answer(response);
    });
    const plan = { ...PLAN, kind: 'http-open', port, maxConnections: 64, ratePerS: 500, seed: 5 } as const;
    const result = await httpOpenLoad({ ...plan, arrivals: 'conversation-trace' }, () => undefined);
    const due = conversationTimesMs(500, PLAN.warmupMs + PLAN.measureMs + 1000).filter(
      (at) => at >= PLAN.warmupMs && at < PLAN.warmupMs + PLAN.measureMs,
    );
    expect(result.answered).toBeGreaterThan(due.length * 0.7);
    expect(result.answered).toBeLessThan(due.length * 1.3);
  });
});

describe('closed loop', () => {
  test('keeps exactly as many requests in flight as connections and varies its bodies', async () => {
    const waiting: Parameters<RequestListener>[1][] = [];
    let most = 0;
    const bodies = new Set<string>();
    const port = await serve((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        bodies.add(body);
        most = Math.max(most, waiting.push(response));
        // Nobody is answered before all three are here: with fewer in flight nothing would ever be answered.
        if (waiting.length === 3) setImmediate(() => waiting.splice(0).forEach((held) => answer(held)));
      });
    });
    const result = await httpClosedLoad({ ...PLAN, kind: 'http-closed', port, connections: 3 }, () => undefined);
    expect(result.failed).toBe(0);
    expect(result.answered).toBeGreaterThan(10);
    expect(most).toBe(3);
    expect(bodies.size).toBeGreaterThan(10);
    expect(JSON.parse([...bodies][0] ?? '')).toMatchObject({ inputs: [{ name: 'x', shape: [1, 16], datatype: 'FP32' }] });
  });

  test('counts refusals as failures', async () => {
    const port = await serve((request, response) => {
      request.resume();
      answer(response, 429);
    });
    const result = await httpClosedLoad({ ...PLAN, kind: 'http-closed', port, connections: 2 }, () => undefined);
    expect(result.answered).toBe(0);
    expect(result.failed).toBeGreaterThan(0);
    expect(result.firstFailure).toBe('HTTP 429');
  });

  test('fails when the server closes a connection', async () => {
    const port = await serve((request) => request.socket.destroy());
    await expect(httpClosedLoad({ ...PLAN, kind: 'http-closed', port, connections: 2 }, () => undefined)).rejects.toThrow(/closed|reset/i);
  });
});
