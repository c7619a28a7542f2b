// The gRPC adapter over real sockets: the contract, strangers, and connections that are cut, frozen or half-open.
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { expect, jest, test } from '@jest/globals';
import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { systemClock } from '@paceline/clock';
import { Handshake, randomId } from '@paceline/link';
import { CONTRACT_WORKER, describeRemoteWorker, FakeWorker, RemoteRecorder } from '../testing/index.js';
import { connectGrpcWorker, type GrpcWorkerOptions } from './client.js';
import { serveScheduler, type ServedConnection } from './server.js';
import { channelOptions, CONNECT_METHOD, CONNECT_PATH, STREAM_PROTOCOL, workerService } from './service.js';

jest.setTimeout(20_000);

const SECRET = new TextEncoder().encode('of this cluster');
const clock = systemClock;

async function listen(served: FakeWorker, { secret = SECRET, worker = CONTRACT_WORKER } = {}) {
  const server = new Server(channelOptions);
  const connections = new Set<ServedConnection>();
  const ended: string[] = [];
  server.addService(workerService, {
    [CONNECT_METHOD]: (call: Parameters<typeof serveScheduler>[0]) => {
      const connection = serveScheduler(call, {
        served,
        identity: { secret, self: { role: 'worker', id: worker, session: randomId() } },
        clock,
        onEnd(_scheduler, reason) {
          connections.delete(connection);
          ended.push(reason);
        },
      });
      connections.add(connection);
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  return {
    address: `127.0.0.1:${port}`,
    port,
    ended,
    cut: () => {
      for (const connection of connections) connection.end('cut by the test');
    },
    close: () => server.forceShutdown(),
  };
}

const connector = (scheduler: string, options: Partial<GrpcWorkerOptions> = {}) =>
  connectGrpcWorker({ identity: { secret: SECRET, self: { role: 'scheduler', id: scheduler, session: randomId() } }, clock, ...options });

describeRemoteWorker('connectGrpcWorker', async (served) => {
  const { address, cut, close } = await listen(served);
  return { address, connectFrom: (scheduler) => connector(scheduler), cut, close: () => Promise.resolve(close()) };
});

test.each([
  [
    'another secret',
    { identity: { secret: Uint8Array.of(1), self: { role: 'scheduler', id: randomId(), session: randomId() } } },
    {},
    /secret/,
  ],
  ['no secret', { identity: { secret: undefined, self: { role: 'scheduler', id: randomId(), session: randomId() } } }, {}, /secret/],
  [
    'the role of a gateway',
    { identity: { secret: SECRET, self: { role: 'gateway', id: randomId(), session: randomId() } } },
    {},
    /not by a gateway/,
  ],
  [
    'another worker at the address',
    {},
    { worker: '00000000000000ff' },
    /expected worker 00000000000000f1 at .*, found worker 00000000000000ff/,
  ],
] as const)('%s: nobody is connected, and both sides say why', async (_, client, server, why) => {
  const served = new FakeWorker(CONTRACT_WORKER);
  const { address, close } = await listen(served, server);
  const told = new RemoteRecorder();
  const failure = Promise.withResolvers<string>();
  const connectTo = connector(randomId(), { ...client, onFailure: (_worker, _address, reason) => failure.resolve(reason) });
  const remote = connectTo(CONTRACT_WORKER, address, told);
  expect(await failure.promise).toMatch(why);
  expect(told.events).toEqual([]);
  expect(remote.connected).toBe(false);
  await remote.close();
  close();
});

/** Between both: may stop passing bytes without closing anything, as a dead network does. */
async function openProxy(port: number) {
  const sockets = new Set<Socket>();
  let passing = true;
  const proxy = createServer((inner) => {
    const outer = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => passing && to.write(bytes));
      from.on('close', () => to.destroy());
      from.on('error', () => to.destroy());
    }
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    address: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    freeze: () => (passing = false),
    thaw: () => (passing = true),
    close: () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}

test('a half-open connection is noticed by both sides within three seconds, and a new one follows', async () => {
  const served = new FakeWorker(CONTRACT_WORKER);
  const server = await listen(served);
  const proxy = await openProxy(server.port);
  const told = new RemoteRecorder();
  const remote = connector(randomId())(CONTRACT_WORKER, proxy.address, told);
  await told.next('up');
  const gone = Promise.withResolvers<number>();
  const disconnect = served.disconnect.bind(served);
  served.disconnect = (session) => {
    disconnect(session);
    gone.resolve(performance.now());
  };
  const frozenAt = performance.now();
  proxy.freeze();
  await told.next('down');
  expect(performance.now() - frozenAt).toBeLessThan(3500);
  expect((await gone.promise) - frozenAt).toBeLessThan(3500);
  proxy.thaw();
  await told.next('up', () => true, told.events.length);
  expect(served.sessions.size).toBe(1);
  await remote.close();
  proxy.close();
  server.close();
});

test('bytes that nobody of this build would send end their own connection, with the reason, and nothing else', async () => {
  const served = new FakeWorker(CONTRACT_WORKER);
  const server = await listen(served);
  const told = new RemoteRecorder();
  const healthy = connector(randomId())(CONTRACT_WORKER, server.address, told);
  await told.next('up');
  const same = (bytes: Buffer): Buffer => bytes;
  const client = new Client(server.address, credentials.createInsecure());
  const call = client.makeBidiStreamRequest<Buffer, Buffer>(CONNECT_PATH, same, same);
  const self = { role: 'scheduler', id: randomId(), session: randomId() } as const;
  const handshake = new Handshake({ side: 'dialer', protocol: STREAM_PROTOCOL, secret: SECRET, self });
  call.write(Buffer.from(handshake.start()!));
  call.on('data', (message: Buffer) => {
    if (handshake.peer) return;
    const answer = handshake.receive(message);
    call.write(answer ? Buffer.from(answer) : Buffer.of(6, 255, 255));
  });
  const [error] = (await once(call, 'error')) as [Error];
  expect(error.message).toMatch(/a message that cannot be read: .* \(at byte \d+\)/);
  expect(served.sessions.size).toBe(1);
  expect(await healthy.claim(1, { number: 1, owner: 'a' })).toEqual({ ok: true, running: [] });
  client.close();
  await healthy.close();
  server.close();
});
