export { default } from '@paceline/tooling/jest/preset.mjs';
