/** The page of the request path names files, spans, metrics and errors that there are. */
import { readdirSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { codeOf, isInRepository, readPage, readRepositoryFile, tablesOf } from '@paceline/testkit';
import { fileURLToPath } from 'node:url';
import { SPAN_NAMES } from './tracing.js';

interface Stop {
  readonly title: string;
  /** By what the list calls them. */
  readonly lists: ReadonlyMap<string, string>;
}

const page = readPage('request-path.md');

const stops: readonly Stop[] = page
  .split(/^### /m)
  .slice(1)
  .map((section) => {
    // The last one is followed by other chapters.
    const [own = ''] = section.split(/^## /m);
    const lists = new Map([...own.matchAll(/^- \*\*(\w+):\*\* ([^]*?)(?=\n- |\n\n|$)/gm)].map(([, name, text]) => [name!, text!]));
    return { title: own.split('\n')[0]!, lists };
  });

/** Text of every source file that is no test. */
function sources(): string[] {
  const root = fileURLToPath(new URL('../../../../', import.meta.url));
  return ['apps', 'packages'].flatMap((group) =>
    readdirSync(`${root}${group}`).flatMap((part) => {
      const folder = `${group}/${part}/src`;
      if (!isInRepository(folder)) return [];
      return readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.includes('testing/'))
        .map((file) => readRepositoryFile(`${folder}/${file}`));
    }),
  );
}

test('there are eight stops, each with its lists', () => {
  expect(stops.map(({ title }) => title.slice(0, 2))).toEqual(['1.', '2.', '3.', '4.', '5.', '6.', '7.', '8.']);
  for (const { lists } of stops) expect([...lists.keys()]).toEqual(['Files', 'Span', 'Metrics', 'Errors']);
});

describe.each(stops)('stop $title', ({ lists }) => {
  test('names files that exist', () => {
    const files = codeOf(lists.get('Files')!);
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => !isInRepository(file))).toEqual([]);
  });

  test('names metrics that some process shows', () => {
    const shown = new Set(tablesOf(readPage('observability.md')).flatMap(({ rows }) => rows.flatMap(({ name = '' }) => codeOf(name))));
    const metrics = codeOf(lists.get('Metrics')!);
    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.filter((metric) => !shown.has(metric))).toEqual([]);
  });

  test('names reasons that are in the source, beside their code', () => {
    const errors = [...lists.get('Errors')!.matchAll(/`(\w+)`\s+([A-Z_]+)/g)].map(([, reason, code]) => ({ reason, code }));
    expect(errors.length).toBe(codeOf(lists.get('Errors')!).length);
    const texts = sources();
    const missing = errors.filter(({ reason, code }) => {
      // A reason that several places use has a name of its own.
      const name = texts.map((text) => new RegExp(`const ([A-Z_]+) = '${reason}'`).exec(text)?.[1]).find((found) => found !== undefined);
      return !texts.some(
        (text) => text.includes(`'${code}'`) && (text.includes(`'${reason}'`) || (name !== undefined && text.includes(`reason: ${name}`))),
      );
    });
    expect(missing).toEqual([]);
  });
});

test('all spans, and no others, are on the page and in the table of spans', () => {
  const named = stops.flatMap(({ lists }) => codeOf(lists.get('Span')!));
  expect(new Set(named)).toEqual(new Set(SPAN_NAMES));
  const table = tablesOf(readPage('observability.md')).find(({ heading }) => heading === 'Traces');
  expect(table?.rows.map(({ span = '' }) => codeOf(span)[0])).toEqual([...SPAN_NAMES]);
});

test('files named elsewhere on the page exist', () => {
  const files = codeOf(page).filter((code) => /^[\w./-]+\/[\w.-]+\.(ts|md|mjs)$/.test(code));
  expect(files.length).toBeGreaterThan(30);
  // Some are written from `apps/` on, as the chapters behind the stops do.
  expect(files.filter((file) => !isInRepository(file) && !isInRepository(`apps/${file}`))).toEqual([]);
});
