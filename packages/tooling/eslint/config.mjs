// The lint rules of the whole repository, run from its root. ESLint looks only for mistakes that types and the formatter
// do not see: lost promises, switches that forget a case, and anything impure in the pure packages.
import { fileURLToPath } from 'node:url';
import js from '@eslint/js';
import { builtinRules } from 'eslint/use-at-your-own-risk';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';
import { pureRules } from './pure.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TESTS = ['**/*.test.ts', '**/testing/**', 'packages/testkit/**', 'apps/e2e/**'];

/** `max-lines` a second time, so that a long file is a warning and a very long one an error. */
const size = { rules: { 'max-lines-at-all': builtinRules.get('max-lines') } };

export default defineConfig(
  { ignores: ['**/dist/', '**/node_modules/', '**/src/gen/', '**/coverage/', '.venv/', 'infra/bench/results/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: ROOT } },
    plugins: { size },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', destructuredArrayIgnorePattern: '^_' },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true, allowNullish: true }],
      // Methods that implement a promised port without waiting for anything are right.
      '@typescript-eslint/require-await': 'off',
      'max-lines': ['warn', 300],
      'size/max-lines-at-all': ['error', 500],
    },
  },
  {
    files: TESTS,
    rules: {
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
  { files: ['packages/core/src/**/*.ts', 'packages/tensor/src/**/*.ts'], ignores: ['**/*.test.ts'], rules: pureRules },
  {
    files: ['**/*.mjs', '**/*.cjs', '**/*.js'],
    languageOptions: { globals: nodeGlobals() },
  },
);

/** What Node's own scripts may use without importing it. */
function nodeGlobals() {
  const names = [
    'process',
    'console',
    'URL',
    'Buffer',
    'setTimeout',
    'clearTimeout',
    'setInterval',
    'clearInterval',
    'setImmediate',
    'fetch',
    'performance',
    'AbortSignal',
    'AbortController',
    'TextEncoder',
    'TextDecoder',
    'structuredClone',
  ];
  return Object.fromEntries(names.map((name) => [name, 'readonly']));
}
