/** The canary of the purity rules: everything they forbid is tried once. */
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { Linter } from 'eslint';
import { parser } from 'typescript-eslint';

const { pureRules } = (await import(fileURLToPath(new URL('../eslint/pure.mjs', import.meta.url)))) as { pureRules: Linter.RulesRecord };

function faults(code: string): string[] {
  const config = [{ files: ['**/*.ts'], languageOptions: { parser: parser as Linter.Parser }, rules: pureRules }];
  return new Linter().verify(code, config, 'a.ts').map(({ message }) => message);
}

test.each([
  'Date.now();',
  'new Date();',
  'performance.now();',
  'setTimeout(f, 1);',
  'setImmediate(f);',
  'queueMicrotask(f);',
  'Math.random();',
  'crypto.randomUUID();',
  'process.env.X;',
  "console.log('x');",
  'Promise.resolve(1);',
  'globalThis.Date.now();',
  'let p: Promise<number>;',
  'async function f() {}',
  'const f = async () => 1;',
  "import fs from 'node:fs';",
  "import fs from 'fs';",
  "import { Injectable } from '@nestjs/common';",
  "const m = import('./x.js');",
])('%s', (code) => {
  expect(faults(code)).not.toEqual([]);
});

test('a pure function is fine', () => {
  expect(faults('export function wait(nowUs: number, untilUs: number): number { return Math.max(0, untilUs - nowUs); }')).toEqual([]);
});
