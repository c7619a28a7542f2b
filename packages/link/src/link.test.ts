// Links over real sockets: what is sent arrives once and in order, whatever happens to the connections meanwhile.
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { FakeClock } from '@paceline/clock/testing';
import { linkPair, Reports, type LinkPair, type PairOptions } from './testing/link-pair.js';
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
const texts = (reports: Reports): string[] => reports.messages.map(({ body }) => body.toString());

describe('a link', () => {
  test('carries messages of any kind in both directions, in order', async () => {
    const { client, atServer, atClient } = await connected();
    for (let i = 0; i < 500; i++) client.send(i % 64, ...text(`c${i}`), { reliable: i % 3 !== 0 });
    for (let i = 0; i < 500; i++) atServer.ups[0]!.send(5, ...text(`s${i}`));
    await until('all have arrived', () => atServer.messages.length === 500 && atClient.messages.length === 500);
    expect(texts(atServer)).toEqual(Array.from({ length: 500 }, (_, i) => `c${i}`));
    expect(atServer.messages.map(({ kind }) => kind)).toEqual(Array.from({ length: 500 }, (_, i) => i % 64));
    expect(texts(atClient)).toEqual(Array.from({ length: 500 }, (_, i) => `s${i}`));
  });

  test('what was sent before the first connection arrives', async () => {
    pair = await linkPair();
    pair.client.send(1, ...text('early'));
    pair.client.send(1, ...text('lost'), { reliable: false });
    await until('it has arrived', () => pair.atServer.messages.length === 1);
    expect(await pair.client.peer.flush(2000)).toBe(true);
    expect(texts(pair.atServer)).toEqual(['early']);
    expect(pair.client.peer.owedBytes).toBe(0);
  });

  test('cuts lose nothing and double nothing, small or large', async () => {
    const { client, atServer, proxy } = await connected();
    let sent = 0;
    const large = Buffer.alloc(300_000, 1);
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 200; i++) {
        client.send(1, ...text(String(sent++)), { lane: 7 });
        if (i % 50 === 0) client.send(2, [Buffer.from('large'), large], large.length + 5);
      }
      const seen = atServer.messages.length + 20;
      await until('some have arrived', () => atServer.messages.length >= seen);
      proxy.cut();
    }
    await until('all have arrived', () => atServer.messages.length === sent + 48);
    expect(await client.peer.flush(2000)).toBe(true);
    expect(atServer.messages.filter(({ kind }) => kind === 1).map(({ body }) => body.toString())).toEqual(
      Array.from({ length: sent }, (_, i) => String(i)),
    );
    const whole = Buffer.concat([Buffer.from('large'), large]);
    expect(atServer.messages.filter(({ kind, body }) => kind === 2 && body.equals(whole))).toHaveLength(48);
    expect([atServer.downs, atServer.ups.length]).toEqual([[], 1]);
    expect(proxy.accepted).toBeGreaterThanOrEqual(12);
    expect(client.peer.owedBytes).toBe(0);
  });

  test('a message never overtakes a large one in its lane, even across a cut', async () => {
    const { client, atServer, proxy } = await connected();
    const large = Buffer.alloc(40_000_000, 1);
    client.send(1, [large], large.length, { lane: 3 });
    client.send(2, ...text('after it'), { lane: 3 });
    client.send(3, [large], large.length, { lane: 3 });
    client.send(4, ...text('beside it'));
    await until('the free one has overtaken', () => atServer.messages.length > 0);
    proxy.cut();
    await until('all have arrived', () => atServer.messages.length === 4, 15_000);
    expect(atServer.messages.map(({ kind }) => kind)).toEqual([4, 1, 2, 3]);
  });

  test('a peer that is gone is down after the grace, and up again when it comes back', async () => {
    const clock = new FakeClock();
    const { atServer, atClient, proxy, client } = await connected({ clock });
    proxy.refuse(true);
    proxy.cut();
    await until('both have noticed', () => !client.peer.connected && !atServer.ups[0]!.connected);
    clock.advance(999_000);
    expect([atServer.downs, atClient.downs]).toEqual([[], []]);
    clock.advance(2_000);
    expect([atServer.downs.length, atClient.downs.length]).toEqual([1, 1]);
    client.send(1, ...text('kept'));
    proxy.refuse(false);
    await until('it dials again', () => {
      clock.advance(100_000);
      return atServer.ups.length === 2 && atClient.ups.length === 2;
    });
    await until('the kept message is there', () => atServer.messages.length === 1);
    expect(atServer.ups[1]).toBe(atServer.ups[0]);
  });

  test('what a listener was to send is kept for ten seconds after it went down, unless it is given up before', async () => {
    const clock = new FakeClock();
    const { atServer, atClient, proxy } = await connected({ clock });
    const peer = atServer.ups[0]!;
    const cutOff = async (downMs: number): Promise<void> => {
      proxy.refuse(true);
      proxy.cut();
      await until('it has noticed', () => !peer.connected);
      peer.send(1, ...text(`down for ${downMs} ms`));
      clock.advance(downMs * 1000);
    };
    const back = async (): Promise<void> => {
      proxy.refuse(false);
      await until('it is back', () => {
        clock.advance(50_000);
        return peer.connected;
      });
      expect(await peer.flush(1e6)).toBe(true);
    };
    await cutOff(9000);
    await back();
    await cutOff(11_500);
    await back();
    await cutOff(2000);
    peer.forget();
    await back();
    peer.send(1, ...text('end'));
    await until('the end is there', () => texts(atClient).includes('end'));
    expect(texts(atClient)).toEqual(['down for 9000 ms', 'end']);
  });

  test('a half-open connection is given up after three seconds, a busy one never', async () => {
    const clock = new FakeClock();
    const { atServer, client, proxy } = await connected({ clock });
    for (let second = 0; second < 6; second++) {
      clock.advance(1_000_000);
      await until('the pings have passed', () => true);
      const seen = atServer.messages.length;
      client.send(1, ...text('alive'));
      atServer.ups[0]!.send(1, ...text('alive'));
      await until('words have passed', () => atServer.messages.length > seen && pair.atClient.messages.length > seen);
    }
    expect(proxy.accepted).toBe(1);
    proxy.freeze();
    for (let second = 0; second < 4; second++) clock.advance(1_000_000);
    expect([client.peer.connected, atServer.ups[0]!.connected]).toEqual([false, false]);
    expect(atServer.problems.join()).toContain('silent for 3000 ms');
  });

  test('its own standstill is not taken for the silence of the other', async () => {
    const clock = new FakeClock();
    const { client, atServer } = await connected({ clock });
    const before = clock.nowUs.bind(clock);
    let skippedUs = 0;
    clock.nowUs = () => before() + skippedUs;
    skippedUs = 10_000_000;
    clock.advance(1_000_000);
    expect([client.peer.connected, atServer.ups[0]!.connected]).toEqual([true, true]);
  });

  test('a process that says goodbye is down at once', async () => {
    const { atServer, client } = await connected();
    client.send(1, ...text('last words'));
    expect(await client.peer.flush(2000)).toBe(true);
    client.close();
    await until('it is down', () => atServer.downs.length === 1);
    expect([texts(atServer), atServer.downs]).toEqual([['last words'], ['it has left']]);
  });

  test('that a process is gone after its goodbye is no problem to who dials it', async () => {
    const { server, proxy, atClient } = await connected();
    await server.close();
    await until('it is down', () => atClient.downs.length === 1);
    const { accepted } = proxy;
    await until('it is dialled in vain', () => proxy.accepted > accepted + 1);
    expect([atClient.downs, atClient.problems]).toEqual([['it has left'], []]);
  });

  test('a new session of the same process replaces the old one, which keeps nothing', async () => {
    const { atServer, redial } = await connected();
    const again = new Reports();
    redial(again);
    await until('it is up', () => again.ups.length === 1 && atServer.ups.length === 2);
    expect(atServer.downs).toEqual(['replaced by a new session']);
  });

  test('a flush that cannot succeed ends with its limit', async () => {
    const clock = new FakeClock();
    const { client, proxy } = await connected({ clock });
    proxy.freeze();
    client.send(1, ...text('x'));
    const flushed = client.peer.flush(500);
    clock.advance(500_000);
    expect(await flushed).toBe(false);
  });

  test('the buffer is bounded: what does not fit is refused, and fits later', async () => {
    const { client, proxy, atServer } = await connected({ outboxLimitBytes: 1000 });
    proxy.freeze();
    expect(client.send(1, [Buffer.alloc(600)], 600)).toBe(true);
    expect(client.send(1, [Buffer.alloc(600)], 600)).toBe(false);
    proxy.thaw();
    expect(await client.peer.flush(2000)).toBe(true);
    expect(client.send(1, [Buffer.alloc(600)], 600)).toBe(true);
    await until('both are there', () => atServer.messages.length === 2);
  });
});

describe('large messages', () => {
  test('100 MB pass while small messages stay quick, in both directions, and leave no memory', async () => {
    const { client, atServer, serverBudget } = await connected();
    const large = Buffer.alloc(100_000_000);
    for (let i = 0; i < large.length; i += 4096) large.writeUInt32LE(i, i);
    let answered = 0;
    const delaysMs: number[] = [];
    let whole: Buffer | undefined;
    atServer.hook = (peer, kind, body) => {
      if (kind === 2) whole = body;
      else peer.send(3, [body], body.length);
    };
    pair.atClient.hook = (_, __, body) => {
      delaysMs.push(performance.now() - body.readDoubleLE(0));
      answered++;
    };
    client.send(2, [large.subarray(0, 10), large.subarray(10, 70_000_000), large.subarray(70_000_000)], large.length);
    for (let asked = 0; !whole; asked++) {
      const stamp = Buffer.alloc(8);
      stamp.writeDoubleLE(performance.now());
      client.send(1, [stamp], 8);
      await until('it is answered', () => answered > asked);
    }
    expect(whole.equals(large)).toBe(true);
    delaysMs.sort((a, b) => a - b);
    expect(delaysMs.length).toBeGreaterThan(5);
    expect(delaysMs[Math.floor(delaysMs.length / 2)]).toBeLessThan(50);
    expect(await client.peer.flush(2000)).toBe(true);
    expect([serverBudget.usedBytes, client.peer.owedBytes]).toEqual([0, 0]);
  });

  test('wait for their turn where the budget is used up, and are refused where they could never fit', async () => {
    const { client, atServer, serverBudget } = await connected({ budgetBytes: 1_000_000 });
    const refused: number[] = [];
    for (let i = 0; i < 10; i++) client.send(i, [Buffer.alloc(400_000, i)], 400_000, { onRefused: () => refused.push(i) });
    client.send(10, [Buffer.alloc(1_000_001)], 1_000_001, { onRefused: () => refused.push(10) });
    client.send(11, ...text('small'));
    expect(await client.peer.flush(5000)).toBe(true);
    expect(refused).toEqual([10]);
    expect(atServer.messages.map(({ kind }) => kind).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
    expect(atServer.messages.every(({ kind, body }) => kind === 11 || body.every((byte) => byte === kind))).toBe(true);
    expect(serverBudget.usedBytes).toBe(0);
  });

  test('a cut gives the budget back', async () => {
    const { client, serverBudget, proxy, atServer } = await connected();
    client.send(1, [Buffer.alloc(50_000_000)], 50_000_000);
    await until('it has begun', () => serverBudget.usedBytes > 0);
    proxy.refuse(true);
    proxy.cut();
    await until('it is given back', () => serverBudget.usedBytes === 0);
    proxy.refuse(false);
    await until('it arrives after all', () => atServer.messages.length === 1, 10_000);
  });
});
