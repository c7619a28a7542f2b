/** Lines of the access log: what they say, that no client can forge one, and that a slow or full disk costs no memory. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@paceline/clock';
import { ServingError, type ServedModel } from '@paceline/protocol';
import { createLogger, SILENT } from '@paceline/telemetry';
import { accessLine, MAX_TEXT, type AccessEntry } from './access-line.js';
import { AccessLog } from './access-log.js';
import { AccessRecord } from './access-record.js';
import { readTraceContext } from './trace-context.js';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'access-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

const entry = (more: Partial<AccessEntry> = {}): AccessEntry => ({
  endedMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  protocol: 'http',
  peer: '127.0.0.1:5000',
  number: 7,
  id: 'r-1',
  model: 'digits',
  version: '3',
  status: 200,
  reason: undefined,
  rows: 2,
  bytesIn: 100,
  bytesOut: 40,
  totalUs: 1234.4,
  timings: { queueNs: 1400, computeInputNs: 2600, computeInferNs: 3000, computeOutputNs: 400, batchRows: 5 },
  trace: { traceId: TRACE, parentId: SPAN },
  ...more,
});

describe('a line', () => {
  test('says everything of a request', () => {
    expect(JSON.parse(accessLine(entry()))).toEqual({
      time: '2026-01-02T03:04:05.006Z',
      protocol: 'http',
      status: 200,
      model: 'digits',
      version: '3',
      request: 7,
      id: 'r-1',
      peer: '127.0.0.1:5000',
      rows: 2,
      bytes_in: 100,
      bytes_out: 40,
      total_us: 1234,
      queue_us: 1,
      compute_input_us: 3,
      compute_infer_us: 3,
      compute_output_us: 0,
      batch_size: 5,
      trace_id: TRACE,
      parent_id: SPAN,
    });
  });

  test('leaves out what a refused request does not have', () => {
    const refused = entry({
      number: undefined,
      id: '',
      rows: undefined,
      timings: undefined,
      trace: undefined,
      status: 400,
      reason: 'json_invalid',
    });
    expect(Object.keys(JSON.parse(accessLine(refused)) as object)).toEqual([
      'time',
      'protocol',
      'status',
      'model',
      'version',
      'peer',
      'reason',
      'bytes_in',
      'bytes_out',
      'total_us',
    ]);
  });

  test.each([
    ['a line break', 'x\n{"status":200}'],
    ['a carriage return', 'x\r\n'],
    ['quotes and backslashes', '","status":500,"x":"\\'],
    ['a terminal sequence', '\u001b[2J\u009b2J\u007f'],
    ['Unicode line ends', 'a\u2028b\u2029c'],
    ['half a surrogate pair', 'a\ud800b'],
    ['a zero', 'a\0b'],
  ])('keeps %s of a client inside its string', (_, text) => {
    const line = accessLine(entry({ id: text, model: text }));
    expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
    expect(line.endsWith('}\n')).toBe(true);
    const read = JSON.parse(line) as Record<string, unknown>;
    expect(read['id']).toBe(text);
    expect(read['model']).toBe(text);
    expect(read['status']).toBe(200);
    expect(Buffer.from(line).toString()).toBe(line);
  });

  test('cuts long texts', () => {
    const { id } = JSON.parse(accessLine(entry({ id: 'i'.repeat(100_000) }))) as { id: string };
    expect(id).toBe(`${'i'.repeat(MAX_TEXT)}…`);
  });
});

describe('the trace context', () => {
  test.each([
    [`00-${TRACE}-${SPAN}-01`, true],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-brings`, true],
    [`ff-${TRACE}-${SPAN}-01`, false],
    [`00-${TRACE.toUpperCase()}-${SPAN}-01`, false],
    [`00-${'0'.repeat(32)}-${SPAN}-01`, false],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, false],
    [`00-${TRACE}-${SPAN}`, false],
    [`00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`, false],
    ['', false],
  ])('%s', (text, valid) => {
    expect(readTraceContext(text)).toEqual(valid ? { traceId: TRACE, parentId: SPAN } : undefined);
  });
});

describe('the log', () => {
  const logger = createLogger(SILENT);
  const lines = (file: string): Record<string, unknown>[] =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  test('has every line in order when it is closed, in folders that it makes', async () => {
    const file = join(folder, 'new', 'access.log');
    const log = new AccessLog(file, systemClock, logger);
    for (let number = 1; number <= 1000; number += 1) log.write(entry({ number }));
    await log.close();
    expect(lines(file).map(({ request }) => request)).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1));
    expect([log.writtenLines, log.droppedLines]).toEqual([1000, 0]);
  });

  test('drops and counts what does not fit, and keeps whole lines', async () => {
    const file = join(folder, 'access.log');
    const log = new AccessLog(file, systemClock, logger);
    // Nothing can be written while this loop runs: everything has to wait.
    for (let number = 1; number <= 40_000; number += 1) log.write(entry({ number }));
    expect(log.droppedLines).toBeGreaterThan(1000);
    await log.close();
    expect(lines(file)).toHaveLength(40_000 - log.droppedLines);
    expect(log.writtenLines).toBe(40_000);
  });

  test('says once that it cannot write', async () => {
    const serverLog = join(folder, 'server.log');
    const log = new AccessLog('/dev/full', systemClock, createLogger({ ...SILENT, error: true, file: serverLog }));
    for (let number = 1; number <= 200; number += 1) log.write(entry({ number }));
    await log.close();
    expect(lines(serverLog)).toEqual([
      expect.objectContaining({ msg: 'the access log cannot be written', err: expect.objectContaining({ code: 'ENOSPC' }) }),
    ]);
  });
});

describe('a record', () => {
  const model = { name: 'm', version: '4' } as ServedModel;

  test('ends once, with what was learned on the way', async () => {
    const file = join(folder, 'access.log');
    const log = new AccessLog(file, systemClock, createLogger(SILENT));
    const record = new AccessRecord(log, {
      protocol: 'grpc',
      peer: '[::1]:9',
      traceparent: `00-${TRACE}-${SPAN}-00`,
      model: 'm',
      version: '',
      bytesIn: 10,
    });
    record.identify('mine');
    record.accepted({ model, number: 12, rows: 3, cancel: () => undefined });
    const error = new ServingError('DEADLINE_EXCEEDED', 'late', { reason: 'request_timeout' });
    record.end(4, 0, error);
    record.end(0, 99, undefined);
    await log.close();
    const text = readFileSync(file, 'utf8');
    expect(text.trimEnd().split('\n')).toHaveLength(1);
    expect(JSON.parse(text)).toMatchObject({
      request: 12,
      id: 'mine',
      model: 'm',
      version: '4',
      rows: 3,
      status: 4,
      reason: 'request_timeout',
      bytes_in: 10,
      bytes_out: 0,
      trace_id: TRACE,
      parent_id: SPAN,
    });
  });
});
