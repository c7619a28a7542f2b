// The in-memory adapter keeps the contract of the ports; nothing is asynchronous in it.
import { expect, test } from '@jest/globals';
import { InMemoryStreams } from './in-memory.js';
import { describeStreams } from './testing/index.js';

describeStreams('in memory', (intake, gateways) => {
  const streams = new InMemoryStreams();
  streams.attachIntake(intake);
  for (const [gateway, listener] of gateways) streams.attachGateway(gateway, listener);
  const queues = new Map([...gateways.keys()].map((gateway) => [gateway, streams]));
  return Promise.resolve({ queues, replies: streams, settle: () => Promise.resolve(), close: () => Promise.resolve() });
});

test('enqueueing before a scheduler is there is a bug and says so', () => {
  const streams = new InMemoryStreams();
  const ref = { gateway: 'aaaaaaaaaaaaaaaa', number: 1 };
  const nothing = { model: 'm', version: '1', clientId: '', rows: 1, priority: 0, timeoutUs: 0, shapeKey: '', inputs: [], outputs: [] };
  expect(() => streams.enqueue({ ref, ...nothing })).toThrow('before a scheduler was attached');
});
