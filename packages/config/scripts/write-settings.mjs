/** Writes the settings into apps/docs/operations.md from the flag table. Build the package first. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withSettings } from '../dist/testing/settings-text.js';

const page = fileURLToPath(new URL('../../../apps/docs/operations.md', import.meta.url));
writeFileSync(page, withSettings(readFileSync(page, 'utf8')));
