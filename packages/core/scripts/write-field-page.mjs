/** Writes apps/docs/model-configuration.md from the field table. Build the package first. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fieldPage } from '../dist/model-config/testing/field-page.js';

writeFileSync(fileURLToPath(new URL('../../../apps/docs/model-configuration.md', import.meta.url)), fieldPage());
