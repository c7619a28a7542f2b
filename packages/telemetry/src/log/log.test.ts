/** The log by its lines: what is written under which settings, and that each line stays one line. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog, type LoggerOptions } from './logger.js';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'log-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const logOf = (options: Partial<LoggerOptions>) => {
  const file = join(folder, 'server.log');
  const log = createLog({ verbose: 0, info: true, warning: true, error: true, file, ...options });
  const lines = (): Record<string, unknown>[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { ...log, messages: () => lines().map(({ msg }) => msg), lines };
};

describe('the log', () => {
  test('each switch holds for its own level', () => {
    const { logger, messages } = logOf({ info: false, warning: true, error: false, verbose: 1 });
    for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const) logger[level](level);
    expect(messages()).toEqual(['debug', 'warn', 'fatal']);
  });

  test('follows its settings while it runs, also in loggers made before', () => {
    const { logger, module, settings, messages } = logOf({});
    const made = module('http').child({ peer: 'p' });
    made.debug('too early');
    settings.change({ verbose: 1, info: false });
    made.debug('wanted');
    logger.info('switched off');
    expect(messages()).toEqual(['wanted']);
  });

  test('a module may say more or less than the rest, until it is told otherwise', () => {
    const { logger, module, settings, lines } = logOf({});
    const http = module('http').child({ peer: 'p' });
    settings.setLevel('http', 'trace');
    settings.setLevel('worker', 'error');
    http.trace('http speaks');
    logger.debug('the rest does not');
    module('worker').warn('nor does the worker');
    settings.setLevel('http', undefined);
    http.trace('no more');
    expect(lines().map(({ msg, module: name }) => [msg, name])).toEqual([['http speaks', 'http']]);
  });

  test('an audit line is written whatever the settings say', () => {
    const { logger, settings, messages } = logOf({ info: false, warning: false, error: false });
    settings.change({ info: false });
    logger.info({ audit: true, action: 'log.settings.change' }, 'audit');
    logger.info({ audit: 'no' }, 'not one');
    logger.info({ other: true }, 'not one either');
    expect(messages()).toEqual(['audit']);
  });

  test('no text begins a new line', () => {
    const { logger, lines } = logOf({});
    logger.info({ model: 'a\n{"level":"fatal"}' }, 'one\r\ntwo');
    expect(lines()).toHaveLength(1);
  });
});
