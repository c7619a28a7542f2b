/** Pages of the documentation as tests read them: their tables and lists, so that what a page says can be compared with what is. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../../../', import.meta.url);

/** A table under its nearest heading; each row by the words of the head, backquotes left as they are. */
export interface PageTable {
  /** Without its number signs. */
  readonly heading: string;
  readonly rows: readonly Readonly<Record<string, string>>[];
}

/** Text of a page of `apps/docs`. */
export function readPage(name: string): string {
  return readFileSync(fileURLToPath(new URL(`apps/docs/${name}`, ROOT)), 'utf8');
}

/** Whether the repository has that file or folder; `path` is relative to its root. */
export function isInRepository(path: string): boolean {
  return existsSync(fileURLToPath(new URL(path, ROOT)));
}

/** Text of a file of the repository. */
export function readRepositoryFile(path: string): string {
  return readFileSync(fileURLToPath(new URL(path, ROOT)), 'utf8');
}

/** @throws Error for a row that has not as many cells as the head */
export function tablesOf(text: string): PageTable[] {
  const tables: { heading: string; rows: Record<string, string>[] }[] = [];
  let heading = '';
  let head: string[] | undefined;
  for (const line of text.split('\n')) {
    const [, title] = /^#+ (.*)$/.exec(line) ?? [];
    if (title !== undefined) heading = title;
    if (!line.startsWith('|')) {
      head = undefined;
      continue;
    }
    const cells = cellsOf(line);
    if (head === undefined) {
      head = cells;
      tables.push({ heading, rows: [] });
    } else if (!cells.every((cell) => /^:?-+:?$/.test(cell))) {
      if (cells.length !== head.length) throw new Error(`${cells.length} cells where the head has ${head.length}: ${line}`);
      tables.at(-1)!.rows.push(Object.fromEntries(head.map((name, i) => [name, cells[i]!])));
    }
  }
  return tables;
}

/** What stands between backquotes, in order. */
export function codeOf(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
}

/** A pipe behind a backslash is part of its cell. */
function cellsOf(line: string): string[] {
  return line
    .replace(/^\|/, '')
    .replace(/\|\s*$/, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}
