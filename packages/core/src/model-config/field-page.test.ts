// The page of the documentation says what the field table says.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { FIELD_TABLE } from './field-table.js';
import { fieldPage } from './testing/field-page.js';

const PAGE = fileURLToPath(new URL('../../../../apps/docs/model-configuration.md', import.meta.url));

test('the page is current; if not, run node packages/core/scripts/write-field-page.mjs', () => {
  expect(readFileSync(PAGE, 'utf8')).toBe(fieldPage());
});

test('the page has a section for every message of the table, and names what is refused', () => {
  const page = fieldPage();
  for (const message of Object.keys(FIELD_TABLE)) expect(page).toContain(`\n## ${message}\n`);
  expect(page).toMatch(/\| `enable` +\| `bool` +\| \*\*refused\*\* +\| the response cache is not served/);
  expect(page).toMatch(/\| `preferred_batch_size` +\| `repeated int32` +\| served/);
  expect(page).toMatch(/\| `priority_queue_policy` +\| `map<uint64, ModelQueuePolicy>` +\| served/);
});
