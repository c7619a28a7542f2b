/** For tests: a data plane and its clients, ended together after each test; and the requests that they send. */
import { afterEach } from '@jest/globals';
import { decodeResponse, post, RawClient } from './http-client.js';
import { startTestServer, type TestServer, type TestServerOptions } from './test-server.js';

export interface PlaneFixture {
  /** Throws before `start`. */
  readonly server: TestServer;
  start(options?: TestServerOptions): Promise<void>;
  connect(): Promise<RawClient>;
}

/** Call once at the top of a test file. */
export function usePlane(): PlaneFixture {
  let running: TestServer | undefined;
  const clients: RawClient[] = [];
  const server = (): TestServer => {
    if (running === undefined) throw new Error('the test has not started its server');
    return running;
  };
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await running?.close();
    running = undefined;
  });
  return {
    get server() {
      return server();
    },
    start: async (options = {}) => {
      running = await startTestServer(options);
    },
    connect: async () => {
      const client = await RawClient.connect(server().port);
      clients.push(client);
      return client;
    },
  };
}

export const PATH = '/v2/models/identity_int32/infer';
export const LIVE = 'GET /v2/health/live HTTP/1.1\r\nHost: test\r\n\r\n';

/** A small request whose id is `x`. */
export const body = (x: number): string =>
  `{"id":"${x}","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,4],"data":[${x},0,0,0]}]}`;
export const infer = (x: number, headers: Record<string, string> = {}): Buffer => post(PATH, body(x), headers);

/** The same request in chunked form, which only node:http reads. */
export function chunked(x: number): Buffer {
  const text = body(x);
  const half = text.length >> 1;
  const chunk = (part: string): string => `${part.length.toString(16)}\r\n${part}\r\n`;
  const head = `POST ${PATH} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n`;
  return Buffer.from(`${head}${chunk(text.slice(0, half))}${chunk(text.slice(half))}0\r\n\r\n`);
}

/** The id in the next response. @throws where its status is not 200 */
export async function idOf(client: RawClient): Promise<string> {
  const { status, text } = decodeResponse(await client.response());
  if (status !== 200) throw new Error(`answered ${status}: ${text}`);
  return (JSON.parse(text) as { id: string }).id;
}

const PATIENCE_MS = 10_000;

/** Lets the event loop turn until `condition` holds. @throws when it never does */
export async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`never held: ${condition.toString()}`);
    await turn();
  }
}

/** One turn of the event loop. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
