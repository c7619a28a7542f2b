import { expect, test } from '@jest/globals';
import { ServingError, toServingError } from './error.js';

test('what the machine has run out of is said without a path; other errors give nothing away', () => {
  const own = new ServingError('NOT_FOUND', 'no such model');
  expect(toServingError(own)).toBe(own);
  const open = Object.assign(new Error("EMFILE: too many open files, open '/secret/model.onnx'"), { code: 'EMFILE' });
  expect(toServingError(open)).toMatchObject({ code: 'UNAVAILABLE', reason: 'machine_exhausted', cause: open });
  expect(toServingError(open).message).toContain('no file descriptors left (EMFILE)');
  expect(toServingError(open).message).not.toContain('secret');
  expect(toServingError(Object.assign(new Error('ENOENT: secret'), { code: 'ENOENT' }))).toMatchObject({
    code: 'INTERNAL',
    message: 'internal error; the server log has the details',
  });
  expect(toServingError('a text')).toMatchObject({ code: 'INTERNAL' });
});

test('what a client did collects no stack, and leaves the stacks of others alone', () => {
  const limit = Error.stackTraceLimit;
  expect(new ServingError('RESOURCE_EXHAUSTED', 'the queue is full').stack).not.toContain('\n    at ');
  expect(Error.stackTraceLimit).toBe(limit);
  expect(new Error('other').stack).toContain('\n    at ');
});

test('a bug keeps its stack', () => {
  const error = toServingError(new TypeError('a bug'));
  expect(error.code).toBe('INTERNAL');
  expect(error.stack).toContain('\n    at ');
});
