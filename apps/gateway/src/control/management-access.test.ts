import { describe, expect, it } from '@jest/globals';
import { objectionToManagement } from './management-access.js';

const local = { remoteAddress: '127.0.0.1', host: 'localhost:8000', origin: undefined, headerNames: ['host', 'user-agent'] };

describe('model control', () => {
  it.each(['localhost', '127.0.0.1:8000', '127.8.9.10', '[::1]:8000', '[::1]', 'LOCALHOST:1'])('takes the host %s for local', (host) => {
    expect(objectionToManagement({ ...local, host })).toBeUndefined();
  });

  it.each(['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'])('takes the address %s for local', (remoteAddress) => {
    expect(objectionToManagement({ ...local, remoteAddress })).toBeUndefined();
  });

  it.each([
    ['another machine', { remoteAddress: '10.0.0.7' }, 'this request comes from 10.0.0.7'],
    ['an address that only begins like a local one', { remoteAddress: '::ffff:10.0.0.1' }, 'this request comes from ::ffff:10.0.0.1'],
    ['a peer that is gone', { remoteAddress: undefined }, 'this request comes from an unknown address'],
    ['a host name that is not local', { host: 'models.example' }, "this request names the host 'models.example'"],
    ['a host name that only begins like one', { host: '127.0.0.1.example' }, "this request names the host '127.0.0.1.example'"],
    ['a host with something before it', { host: 'x@localhost' }, "this request names the host 'x@localhost'"],
    ['no host', { host: undefined }, "this request names the host ''"],
    ['a web page', { headerNames: ['origin'] }, "this request carries the header 'origin'"],
    ['a proxy', { headerNames: ['x-forwarded-proto'] }, "this request carries the header 'x-forwarded-proto'"],
    ['a proxy of the standard kind', { headerNames: ['forwarded'] }, "this request carries the header 'forwarded'"],
  ])('is closed to %s', (_who, change, text) => {
    expect(objectionToManagement({ ...local, ...change })).toContain(text);
  });
});
