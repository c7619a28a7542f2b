/** The page of the documentation says of each flag what the flag table says. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { FLAG_NAMES, FLAGS } from './flag-table.js';
import type { Flag } from './flag.js';
import { withSettings } from './testing/settings-text.js';

const PAGE = fileURLToPath(new URL('../../../apps/docs/operations.md', import.meta.url));

test('the settings are current; if not, run node packages/config/scripts/write-settings.mjs', () => {
  const page = readFileSync(PAGE, 'utf8');
  expect(page).toBe(withSettings(page));
});

test('every flag has one row, with its unit and default', () => {
  const rows = readFileSync(PAGE, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `--'));
  expect(rows.map((row) => /^\| `--([\w-]+)`/.exec(row)?.[1]).sort()).toEqual([...FLAG_NAMES].sort());
  for (const row of rows) {
    const name = /^\| `--([\w-]+)`/.exec(row)?.[1] as (typeof FLAG_NAMES)[number];
    const flag: Flag = FLAGS[name];
    expect(row).toContain(`\`${flag.type.placeholder.replaceAll('|', '\\|')}\``);
    if (!flag.repeatable && flag.default !== undefined && flag.defaultNote === undefined) expect(row).toContain(` \`${flag.default}\` `);
  }
});
