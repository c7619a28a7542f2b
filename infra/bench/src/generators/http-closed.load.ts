/** Closed loop over HTTP: as many requests in flight as connections, all the time. */
import { benchModel } from '../models/catalog.js';
import { httpRequests } from '../requests/http-request.js';
import { HttpConnection } from './http-connection.js';
import type { LoadPlan, LoadResult } from './load-plan.js';
import { Recorder } from './recorder.js';
import { breaker, measureWindow } from './window.js';

export async function httpClosedLoad(plan: Extract<LoadPlan, { kind: 'http-closed' }>, onWindowOpen: () => void): Promise<LoadResult> {
  const requests = httpRequests(benchModel(plan.model), plan.form);
  const recorder = new Recorder();
  const { broken, break: breakLoad } = breaker();
  let next = 0;
  let sending = true;
  const connections: HttpConnection[] = [];
  for (let i = 0; i < plan.connections; i++) {
    let sentAtMs = 0;
    const send = (connection: HttpConnection): void => {
      const request = requests[next++ % requests.length];
      if (!sending || request === undefined) return;
      sentAtMs = performance.now();
      connection.send(request);
    };
    const connection = await HttpConnection.open(
      plan.port,
      (status) => {
        if (status === 200) recorder.succeeded(sentAtMs, performance.now());
        else if ((status === 429 || status === 504) && plan.mayRefuse) recorder.refused(sentAtMs, performance.now());
        else recorder.failure(`HTTP ${status}`);
        send(connection);
      },
      breakLoad,
    );
    connections.push(connection);
    send(connection);
  }
  try {
    return await measureWindow(plan, { recorder, broken, onWindowOpen });
  } finally {
    sending = false;
    for (const connection of connections) connection.close();
  }
}
