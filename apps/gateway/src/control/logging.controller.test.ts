/** The log settings over HTTP: Triton's form and texts, levels of modules, and who may change them. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ControlRig, type ControlReply } from '../testing/control-rig.js';

describe('the log settings', () => {
  let rig: ControlRig;
  beforeEach(async () => {
    rig = await ControlRig.start();
  });
  afterEach(() => rig.stop());

  const DEFAULTS = '{"log_file":"","log_info":true,"log_warning":true,"log_error":true,"log_verbose_level":0,"log_format":"default"}';

  it('are read and changed in the form of Triton', async () => {
    expect(await rig.call('GET', '/v2/logging')).toMatchObject({ status: 200, body: DEFAULTS });
    const payload = JSON.stringify({ log_info: false, log_verbose_level: 2, log_format: 'ISO8601', unknown_to_all: 1 });
    const changed = DEFAULTS.replace('"log_info":true', '"log_info":false')
      .replace('level":0', 'level":2')
      .replace('"default"', '"ISO8601"');
    expect(await rig.call('POST', '/v2/logging', { payload })).toMatchObject({ status: 200, body: changed });
    expect((await rig.call('GET', '/v2/logging')).body).toBe(changed);
    expect(rig.logSettings.isEnabled('trace', 'http')).toBe(true);
    expect(rig.logSettings.isEnabled('info', 'http')).toBe(false);
    expect((await rig.call('POST', '/v2/logging')).body).toBe(changed);
  });

  it.each([
    [{ log_info: 1 }, 400, "attempt to access JSON non-boolean as boolean for 'log_info'"],
    [{ log_verbose_level: -1 }, 400, "attempt to access JSON non-unsigned-integer as unsigned-integer for 'log_verbose_level'"],
    [{ log_verbose_level: 1.5 }, 400, "attempt to access JSON non-unsigned-integer as unsigned-integer for 'log_verbose_level'"],
    [{ log_format: 1 }, 400, "attempt to access JSON non-string as string for 'log_format'"],
    [{ log_format: 'foo' }, 400, 'invalid argument for --log_format, got: foo'],
    [{ log_file: '' }, 501, 'log file location can not be updated through network protocol'],
  ])('keep as they are at %j', async (wrong, status, error) => {
    const reply = await rig.call('POST', '/v2/logging', { payload: JSON.stringify({ log_warning: false, ...wrong }) });
    expect([reply.status, JSON.parse(reply.body)]).toEqual([status, { error }]);
    expect((await rig.call('GET', '/v2/logging')).body).toBe(DEFAULTS);
  });

  it('have levels of modules', async () => {
    const none = { http: null, grpc: null, control: null, models: null, worker: null, metrics: null };
    expect(JSON.parse((await rig.call('GET', '/v2/logging/modules')).body)).toEqual({ modules: none });
    const change = (modules: unknown): Promise<ControlReply> =>
      rig.call('POST', '/v2/logging/modules', { payload: JSON.stringify({ modules }) });
    expect(JSON.parse((await change({ worker: 'trace', http: 'error' })).body)).toEqual({
      modules: { ...none, worker: 'trace', http: 'error' },
    });
    expect(rig.logSettings.isEnabled('trace', 'worker')).toBe(true);
    expect(rig.logSettings.isEnabled('warn', 'http')).toBe(false);
    expect(await change({ worker: null, htp: 'info' })).toMatchObject({
      status: 400,
      body: expect.stringContaining("unknown log module 'htp'"),
    });
    expect(await change({ worker: 'loud' })).toMatchObject({
      status: 400,
      body: expect.stringContaining('expected one of trace, debug'),
    });
    expect(rig.logSettings.levelOf('worker')).toBe('trace');
    expect(JSON.parse((await change({ worker: null, http: null })).body)).toEqual({ modules: none });
  });

  it.each(['/v2/logging', '/v2/logging/modules'])('%s is changed only by direct callers on this machine', async (url) => {
    const payload = '{"log_info":false,"modules":{"http":"fatal"}}';
    expect((await rig.call('POST', url, { payload, remoteAddress: '10.0.0.7' })).status).toBe(403);
    expect((await rig.call('POST', url, { payload, headers: { origin: 'http://localhost:8000' } })).status).toBe(403);
    expect([rig.logSettings.switches.info, rig.logSettings.levelOf('http')]).toEqual([true, undefined]);
  });

  it('take GET and POST', async () => {
    expect(await rig.call('DELETE', '/v2/logging')).toMatchObject({ status: 405, headers: { allow: 'GET, POST' } });
  });
});
