// The stream of a scheduler through the Nest microservice, over mutual TLS.
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { systemClock } from '@paceline/clock';
import { randomId } from '@paceline/link';
import type { LinkTls } from '@paceline/nest-kit';
import { createLogger, SILENT } from '@paceline/telemetry';
import { TestAuthority, type TestCertificate } from '@paceline/testkit';
import { channelCredentialsOf, connectGrpcWorker, type ServedPorts } from '@paceline/worker-rpc';
import { CONTRACT_WORKER, describeRemoteWorker, FakeWorker, RemoteRecorder } from '@paceline/worker-rpc/testing';
import { openMicroservice } from './microservice.js';

jest.setTimeout(20_000);

const secret = new TextEncoder().encode('of this cluster');
const clock = systemClock;
const logger = createLogger(SILENT);
let authority: TestAuthority;
let server: LinkTls;
let client: LinkTls;

beforeAll(async () => {
  authority = await TestAuthority.create();
  const ca = readFileSync(authority.certificate.certFile, 'utf8');
  const texts = ({ certFile, keyFile }: TestCertificate): LinkTls => ({
    certificate: readFileSync(certFile, 'utf8'),
    key: readFileSync(keyFile, 'utf8'),
    ca,
  });
  server = texts(await authority.issue('server'));
  client = texts(await authority.issue('client'));
});

afterAll(() => authority.remove());

const portsOf = (served: FakeWorker): ServedPorts => ({
  served,
  identity: { secret, self: { role: 'worker', id: CONTRACT_WORKER, session: randomId() } },
  clock,
});

describeRemoteWorker('the microservice of a worker', async (served) => {
  const microservice = await openMicroservice({ ports: portsOf(served), host: '127.0.0.1', port: 0, tls: server, logger });
  let { port } = microservice;
  let open = microservice;
  return {
    get address() {
      return `localhost:${port}`;
    },
    connectFrom: (scheduler) =>
      connectGrpcWorker({
        identity: { secret, self: { role: 'scheduler', id: scheduler, session: randomId() } },
        clock,
        credentials: channelCredentialsOf(client),
      }),
    cut() {
      void open.close().then(async () => {
        open = await openMicroservice({ ports: portsOf(served), host: '127.0.0.1', port, tls: server, logger });
        ({ port } = open);
      });
    },
    close: () => open.close(),
  };
});

test('a scheduler without a certificate is not let in', async () => {
  const served = new FakeWorker(CONTRACT_WORKER);
  const microservice = await openMicroservice({ ports: portsOf(served), host: '127.0.0.1', port: 0, tls: server, logger });
  const told = new RemoteRecorder();
  const refused = Promise.withResolvers<string>();
  const connectTo = connectGrpcWorker({
    identity: { secret, self: { role: 'scheduler', id: randomId(), session: randomId() } },
    clock,
    ...(server.ca !== undefined && { credentials: channelCredentialsOf({ ca: server.ca }) }),
    onFailure: (_worker, _address, reason) => refused.resolve(reason),
  });
  const remote = connectTo(CONTRACT_WORKER, `localhost:${microservice.port}`, told);
  expect(await refused.promise).not.toBe('');
  expect(told.events).toEqual([]);
  await remote.close();
  await microservice.close();
});

test('a port that is taken is said in words', async () => {
  const served = new FakeWorker(CONTRACT_WORKER);
  const options = { ports: portsOf(served), host: '127.0.0.1', tls: undefined, logger };
  const first = await openMicroservice({ ...options, port: 0 });
  await expect(openMicroservice({ ...options, port: first.port })).rejects.toThrow(
    /cannot listen for schedulers on 127.0.0.1:\d+: it is already in use/,
  );
  await first.close();
});
