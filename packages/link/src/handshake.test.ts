// Both sides must know the same secret, and nothing of one handshake is worth anything in another.
import { describe, expect, test } from '@jest/globals';
import { Handshake, HandshakeError, refusal, type HandshakeOptions } from './handshake.js';

const SECRET = Buffer.from('secret');
const WORKER = { role: 'worker', id: '0123456789abcdef', session: '1111111111111111' } as const;
const GATEWAY = { role: 'gateway', id: 'fedcba9876543210', session: '2222222222222222' } as const;

const dialer = (options: Partial<HandshakeOptions> = {}): Handshake =>
  new Handshake({ side: 'dialer', protocol: 'p/1', secret: SECRET, self: WORKER, ...options });
const listener = (options: Partial<HandshakeOptions> = {}): Handshake =>
  new Handshake({ side: 'listener', protocol: 'p/1', secret: SECRET, self: GATEWAY, ...options });

/** Lets them talk until nobody has anything to say. */
function talk(a: Handshake, b: Handshake, change: (message: Uint8Array, index: number) => Uint8Array = (message) => message): void {
  let message = a.start();
  let from = a;
  for (let index = 0; message; index++) {
    from = from === a ? b : a;
    message = from.receive(change(message, index));
  }
}

describe('handshake', () => {
  test('tells each side who the other is', () => {
    const [a, b] = [dialer(), listener()];
    talk(a, b);
    expect(a.peer).toEqual(GATEWAY);
    expect(b.peer).toEqual(WORKER);
  });

  test('works without a secret where neither side has one', () => {
    const [a, b] = [dialer({ secret: undefined }), listener({ secret: undefined })];
    talk(a, b);
    expect([a.peer?.id, b.peer?.id]).toEqual([GATEWAY.id, WORKER.id]);
  });

  test.each([
    ['another secret', { secret: Buffer.from('other') }, 'another cluster secret'],
    ['no secret', { secret: undefined }, 'the other side has no cluster secret'],
    ['an empty secret is not the lack of one', { secret: Buffer.alloc(0) }, 'another cluster secret'],
    ['another protocol', { protocol: 'p/2' }, "expected the protocol 'p/1', found 'p/2'"],
    ['a malformed id', { self: { ...WORKER, id: 'x' } }, 'the id is not 16 hex digits'],
  ])('a dialer with %s is refused', (_, options, message) => {
    const b = listener();
    expect(() => talk(dialer(options), b)).toThrow(message);
    expect(b.peer).toBeUndefined();
  });

  test('a listener that does not know the secret is found out by the dialer', () => {
    const a = dialer();
    const b = listener({ secret: Buffer.from('other') });
    const challenge = b.receive(a.start()!)!;
    a.receive(challenge);
    expect(() => a.receive(Buffer.from(JSON.stringify({ mac: '00'.repeat(32) })))).toThrow('another cluster secret');
    expect(a.peer).toBeUndefined();
  });

  test('what was changed on the way is found out', () => {
    const forge = (message: Uint8Array, index: number): Uint8Array =>
      index === 0 ? Buffer.from(Buffer.from(message).toString().replace(WORKER.id, 'ffffffffffffffff')) : message;
    expect(() => talk(dialer(), listener(), forge)).toThrow('another cluster secret');
  });

  test('a proof cannot be replayed, nor reflected', () => {
    const recorded: Uint8Array[] = [];
    talk(dialer(), listener(), (message) => {
      recorded.push(Uint8Array.from(message));
      return message;
    });
    const again = listener();
    again.receive(recorded[0]!);
    expect(() => again.receive(recorded[2]!)).toThrow(HandshakeError);
    const a = dialer();
    const proof = a.receive(listener().receive(a.start()!)!)!;
    expect(() => a.receive(proof)).toThrow('another cluster secret');
  });

  test('a refusal says why', () => {
    const a = dialer();
    a.start();
    expect(() => a.receive(refusal(new HandshakeError('the\nreason')))).toThrow('refused by the other side: the?reason');
  });

  test.each([Buffer.from('garbage'), Buffer.from('null'), Buffer.from('[]'), Buffer.alloc(5000, 'x'), Buffer.alloc(0)])(
    'garbage is refused (%#)',
    (message) => {
      expect(() => listener().receive(message)).toThrow(HandshakeError);
    },
  );
});
