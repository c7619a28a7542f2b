/** TLS at both doors: what bare sockets serve and what they hand over, client certificates, renewal, clients that stall. */
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { credentials } from '@grpc/grpc-js';
import { FakeClock } from '@paceline/clock/testing';
import { TestAuthority, type TestCertificate } from '@paceline/testkit';
import { AccessRig } from '../testing/access-rig.js';
import { post, RawClient } from '../testing/http-client.js';
import { until } from '../testing/until.js';
import { TlsFiles } from './tls-files.js';

let authority: TestAuthority;
let server: TestCertificate;
let client: TestCertificate;
let stranger: TestCertificate;
beforeAll(async () => {
  authority = await TestAuthority.create();
  server = await authority.issue('server');
  client = await authority.issue('client');
  stranger = await authority.issue('stranger', false);
});
afterAll(() => authority.remove());

let rig: AccessRig;
let files: TlsFiles;
const clock = new FakeClock();
async function start(mutual: boolean, of = server): Promise<void> {
  rig = await AccessRig.start({
    tls: (logger) => {
      const { certFile, keyFile } = of;
      files = new TlsFiles({ certFile, keyFile, caFile: mutual ? authority.certificate.certFile : undefined, mutual }, clock, logger);
      return files;
    },
  });
}
afterEach(async () => {
  files.close();
  await rig.stop();
});

async function open(more: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connectTls({ port: rig.httpPort, host: 'localhost', ca: authority.certificate.cert, ...more });
  await once(socket, 'secureConnect');
  return socket;
}

const BODY = (rows: number): string =>
  JSON.stringify({ inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, rows], data: Array.from({ length: rows }, (_, i) => i) }] });
const INFER = '/v2/models/identity_var/infer';

describe('HTTP over TLS', () => {
  it('serves inference from bare sockets, large bodies and pipelines included, and hands over the rest', async () => {
    await start(false);
    const raw = RawClient.over(await open({ ALPNProtocols: ['h2', 'http/1.1'] }));
    expect((raw.socket as TLSSocket).alpnProtocol).toBe('http/1.1');
    const large = BODY(50_000);
    raw.send(Buffer.concat([post(INFER, BODY(3)), post(INFER, large), post(INFER, BODY(4))]));
    const lengths = [];
    for (let i = 0; i < 3; i++) {
      const { status, body } = await raw.response();
      expect(status).toBe(200);
      lengths.push((JSON.parse(body.toString()) as { outputs: [{ data: number[] }] }).outputs[0].data.length);
    }
    expect(lengths).toEqual([3, 50_000, 4]);
    raw.send('GET /v2/models/identity_var HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect((await raw.response()).status).toBe(200);
    raw.send(post(INFER, large));
    expect((await raw.response()).status).toBe(200);
    raw.destroy();
  });

  it('reads what comes one byte at a time', async () => {
    await start(false);
    const raw = RawClient.over(await open());
    for (const byte of post(INFER, BODY(2))) raw.send(Buffer.of(byte));
    expect((await raw.response()).status).toBe(200);
    raw.destroy();
  });

  it('speaks nothing older than TLS 1.2, and no plain HTTP', async () => {
    await start(false);
    await expect(open({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' })).rejects.toThrow();
    const plain = await RawClient.connect(rig.httpPort);
    plain.send(post(INFER, BODY(2)));
    expect(await plain.closed()).not.toContain('HTTP/1.1 200');
  });

  it('a client whose connection breaks in a handshake, or that never begins one, harms nobody', async () => {
    await start(false);
    const stalled = connectTcp(rig.httpPort, 'localhost');
    await once(stalled, 'connect');
    const broken = connectTcp(rig.httpPort, 'localhost');
    await once(broken, 'connect');
    broken.write(Buffer.from([0x16, 3, 1, 0, 4, 99, 0, 0, 0]));
    broken.resume();
    await once(broken, 'close');
    const raw = RawClient.over(await open());
    raw.send(post(INFER, BODY(2)));
    expect((await raw.response()).status).toBe(200);
    // Stopping the rig proves that the stalled one does not hold the server open.
    stalled.on('error', () => undefined);
  });

  it('asks for certificates of its authority, where both sides must show one', async () => {
    await start(true);
    const raw = RawClient.over(await open({ cert: client.cert, key: client.key }));
    raw.send(post(INFER, BODY(2)));
    expect((await raw.response()).status).toBe(200);
    raw.destroy();
    for (const shown of [{}, { cert: stranger.cert, key: stranger.key }]) {
      // In TLS 1.3 the refusal comes after the handshake, as seen by the client.
      const socket = connectTls({ port: rig.httpPort, host: 'localhost', ca: authority.certificate.cert, ...shown });
      const refused = new Promise<string>((resolve) => {
        let received = '';
        socket.on('data', (bytes: Buffer) => (received += bytes.toString())).on('error', () => undefined);
        socket.on('close', () => resolve(received));
      });
      socket.write(post(INFER, BODY(2)));
      expect(await refused).toBe('');
    }
    expect(rig.queue.enqueued).toHaveLength(1);
  });
});

describe('gRPC over TLS', () => {
  it('serves and refuses like HTTP', async () => {
    await start(true);
    const ca = Buffer.from(authority.certificate.cert);
    const ssl = ({ key, cert }: TestCertificate) => credentials.createSsl(ca, Buffer.from(key), Buffer.from(cert));
    expect(await rig.grpc('ServerLive', undefined, {}, ssl(client))).toBeInstanceOf(Uint8Array);
    expect(await rig.grpc('ServerLive', undefined, {}, credentials.createSsl(ca))).toMatchObject({ code: 14 });
    expect(await rig.grpc('ServerLive', undefined, {}, ssl(stranger))).toMatchObject({ code: 14 });
    expect(await rig.grpc('ServerLive')).toMatchObject({ code: 14 });
  });

  it('needs no certificate of clients unless it is told to', async () => {
    await start(false);
    expect(await rig.grpc('ServerLive', undefined, {}, credentials.createSsl(Buffer.from(authority.certificate.cert)))).toBeInstanceOf(
      Uint8Array,
    );
  });
});

describe('certificate files that change', () => {
  it('count from the next connection; a set that does not fit changes nothing', async () => {
    const certFile = authority.write('live.pem', server.cert);
    const keyFile = authority.write('live.key', server.key);
    await start(false, { ...server, certFile, keyFile });
    const before = await open();
    const nameOf = (socket: TLSSocket): string => String(socket.getPeerCertificate().subject.CN);
    expect(nameOf(before)).toBe('server');

    const renewed = await authority.issue('renewed');
    copyFileSync(renewed.certFile, certFile);
    clock.advance(1_000_000);
    await until(() => rig.audit.length === 1);
    expect(rig.audit[0]).toMatchObject({ action: 'tls.reload', outcome: 'failed' });
    expect(nameOf(await open())).toBe('server');

    copyFileSync(renewed.keyFile, keyFile);
    clock.advance(1_000_000);
    await until(() => rig.audit.length === 2);
    expect(rig.audit[1]).toMatchObject({ action: 'tls.reload', outcome: 'ok' });
    expect(nameOf(await open())).toBe('renewed');
    expect(await rig.grpc('ServerLive', undefined, {}, credentials.createSsl(Buffer.from(authority.certificate.cert)))).toBeInstanceOf(
      Uint8Array,
    );
    const old = RawClient.over(before);
    old.send(post(INFER, BODY(2)));
    expect((await old.response()).status).toBe(200);
    expect(rig.logText).not.toContain('PRIVATE KEY');
  });

  it('at start a set that does not fit is an error', async () => {
    await start(false);
    const options = { certFile: server.certFile, keyFile: client.keyFile, caFile: undefined, mutual: false };
    expect(() => new TlsFiles(options, clock, undefined as never)).toThrow(/key values mismatch/i);
    expect(() => new TlsFiles({ ...options, keyFile: '/nonexistent' }, clock, undefined as never)).toThrow('/nonexistent');
  });
});
