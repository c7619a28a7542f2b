// The one jest configuration: native ESM, TypeScript compiled by swc, tests beside their source as *.test.ts.
// A package's jest.config.mjs is `export { default } from '@paceline/tooling/jest/preset.mjs'`.
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

export default {
  roots: ['<rootDir>/src'],
  testMatch: ['**/*.test.ts'],
  testEnvironment: here('./main-realm.environment.mjs'),
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      fileURLToPath(import.meta.resolve('@swc/jest')),
      {
        swcrc: false,
        sourceMaps: 'inline',
        jsc: {
          target: 'es2024',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
          keepClassNames: true,
        },
        module: { type: 'es6' },
      },
    ],
  },
};
