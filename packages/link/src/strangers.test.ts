// Who may join a link, and what strangers can do to it: nothing.
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { connect } from 'node:net';
import { systemClock } from '@paceline/clock';
import { FakeClock } from '@paceline/clock/testing';
import { TestAuthority } from '@paceline/testkit';
import { parseAddress } from './address.js';
import { LinkClient } from './link-client.js';
import { LinkServer } from './link-server.js';
import { ReceiveBudget } from './receive-budget.js';
import { GATEWAY, linkPair, Reports, SECRET, WORKER, type LinkPair, type PairOptions } from './testing/link-pair.js';
import { until } from './testing/until.js';

jest.setTimeout(30_000);

let pair: LinkPair;
afterEach(async () => {
  await pair?.close();
});

async function connected(options: PairOptions = {}): Promise<LinkPair> {
  pair = await linkPair(options);
  await until('both ends are up', () => pair.atServer.ups.length === 1 && pair.atClient.ups.length === 1);
  return pair;
}

const text = (value: string): [readonly Uint8Array[], number] => [[Buffer.from(value)], Buffer.byteLength(value)];

describe('strangers', () => {
  test('another secret is refused, with the reason at both ends', async () => {
    pair = await linkPair({ clientSecret: Buffer.from('wrong') });
    await until('both know', () => pair.atServer.problems.length > 0 && pair.atClient.problems.length > 0);
    expect(pair.atServer.problems[0]).toContain('the other side has another cluster secret');
    expect(pair.atClient.problems[0]).toContain('the other side has another cluster secret');
    expect([pair.atServer.ups, pair.atClient.ups]).toEqual([[], []]);
  });

  test.each([
    ['garbage', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['a message without a handshake', Buffer.from([1, 0, 0, 0, 0x81, 1])],
    ['a piece of a transfer without a handshake', Buffer.from([5, 0, 0, 0, 7, 1, 0, 0, 0, 1])],
    ['a long handshake', Buffer.from([0, 8, 0, 0, 1])],
  ])('%s cuts that connection alone', async (_, bytes) => {
    const { client, atServer, proxy } = await connected();
    const stranger = connect(parseAddress(proxy.address));
    let closed = false;
    stranger.on('error', () => undefined).on('close', () => (closed = true));
    stranger.resume();
    stranger.write(bytes);
    await until('it is cut', () => closed);
    client.send(1, ...text('still here'));
    await until('the other works', () => atServer.messages.length === 1);
  });

  test('one that says nothing is cut after five seconds, and too many are not taken', async () => {
    const clock = new FakeClock();
    const { proxy, atServer, client } = await connected({ clock });
    let open = 0;
    let taken = 0;
    const strangers = Array.from({ length: 70 }, () => {
      const socket = connect(parseAddress(proxy.address), () => taken++);
      socket.resume();
      open++;
      return socket.on('error', () => undefined).on('close', () => open--);
    });
    await until('the last ones are refused', () => taken === 70 && open === 64);
    clock.advance(5_000_000);
    await until('the others are cut', () => open === 0);
    expect(atServer.problems.filter((problem) => problem.includes('no handshake within 5000 ms'))).toHaveLength(64);
    for (const socket of strangers) socket.destroy();
    await until('the peer is not among them', () => {
      clock.advance(100_000);
      return client.peer.connected;
    });
  });

  test('another process at the address is not taken for the one that was expected', async () => {
    pair = await linkPair();
    await until('up', () => pair.atClient.ups.length === 1);
    const problems: string[] = [];
    const reports = new Reports();
    const client = new LinkClient(
      {
        clock: systemClock,
        protocol: 'test/1',
        self: { role: 'worker', id: 'dddddddddddddddd' },
        secret: SECRET,
        budget: new ReceiveBudget(1),
        address: pair.proxy.address,
        expected: { role: 'gateway', id: 'eeeeeeeeeeeeeeee' },
        onProblem: (problem) => void problems.push(problem),
      },
      reports,
    );
    await until('it says so', () => problems.length > 0);
    client.close();
    expect(problems[0]).toContain('expected gateway eeeeeeeeeeeeeeee');
    expect(reports.ups).toEqual([]);
  });

  test('a process that still dials the one before at this port does not disturb its own link to this one', async () => {
    pair = await linkPair();
    await until('the link is up', () => pair.atServer.ups.length === 1 && pair.atClient.ups.length === 1);
    const problems: string[] = [];
    const reports = new Reports();
    const stale = new LinkClient(
      {
        clock: systemClock,
        protocol: 'test/1',
        self: WORKER,
        secret: SECRET,
        budget: new ReceiveBudget(1),
        address: pair.proxy.address,
        expected: { role: 'gateway', id: 'eeeeeeeeeeeeeeee' },
        onProblem: (problem) => void problems.push(problem),
      },
      reports,
    );
    await until('it has found out', () => problems.length > 0 && pair.atServer.problems.length > 0);
    pair.client.send(1, [Buffer.from('still there')], 11);
    await until('the link carries on', () => pair.atServer.messages.length === 1);
    stale.close();
    expect([pair.atServer.ups.length, pair.atServer.downs, pair.atClient.downs, reports.ups]).toEqual([1, [], [], []]);
  });

  test('without a secret only loopback is allowed', async () => {
    const clock = new FakeClock();
    const server = new LinkServer({ clock, protocol: 'p', self: GATEWAY, secret: undefined, budget: new ReceiveBudget(1) }, new Reports());
    await expect(server.listen('0.0.0.0', 0)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION', reason: 'cluster_secret_missing' });
    pair = await linkPair({ serverSecret: undefined, clientSecret: undefined });
    await until('it works on loopback', () => pair.atServer.ups.length === 1);
  });

  test('a port that is taken is named', async () => {
    const { proxy } = await connected();
    const { port } = parseAddress(proxy.address);
    const clock = new FakeClock();
    const server = new LinkServer({ clock, protocol: 'p', self: GATEWAY, secret: SECRET, budget: new ReceiveBudget(1) }, new Reports());
    await expect(server.listen('127.0.0.1', port)).rejects.toMatchObject({ code: 'UNAVAILABLE', reason: 'link_port_unavailable' });
  });
});

describe('TLS', () => {
  let authority: TestAuthority;
  beforeAll(async () => {
    authority = await TestAuthority.create();
  });
  afterAll(() => authority.remove());

  test('with certificates of one authority on both ends it carries everything', async () => {
    const [server, client] = [await authority.issue('server'), await authority.issue('client')];
    const ca = authority.certificate.cert;
    const { client: link, atServer } = await connected({
      serverTls: { certificate: server.cert, key: server.key, ca },
      clientTls: { certificate: client.cert, key: client.key, ca },
    });
    link.send(1, [Buffer.alloc(3_000_000, 5)], 3_000_000);
    await until('it is there', () => atServer.messages.length === 1);
    expect(atServer.messages[0]!.body.every((byte) => byte === 5)).toBe(true);
  });

  test('a dialler without a certificate is refused where one is demanded', async () => {
    const server = await authority.issue('server');
    const ca = authority.certificate.cert;
    pair = await linkPair({ serverTls: { certificate: server.cert, key: server.key, ca }, clientTls: { ca } });
    await until('both know', () => pair.atServer.problems.length > 0 && pair.atClient.problems.length > 0);
    expect(pair.atServer.problems[0]).toContain('without a valid certificate');
    expect(pair.atServer.ups).toEqual([]);
  });

  test('a certificate of nobody is refused by the dialler', async () => {
    const server = await authority.issue('stranger', false);
    const ca = authority.certificate.cert;
    pair = await linkPair({ serverTls: { certificate: server.cert, key: server.key }, clientTls: { ca } });
    await until('it knows', () => pair.atClient.problems.length > 0);
    expect(pair.atClient.ups).toEqual([]);
  });
});
