// Tells whether what was installed and built still belongs to what lies in the repository, without reading a source file:
// a second start has to be quick.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './runtime.mjs';

const STAMP = join(ROOT, 'node_modules', '.paceline', 'set-up.json');
const WORKSPACE_PARENTS = ['apps', 'packages', 'infra'];
/** What a build reads, beside package.json; the rest of a package (tests' data, results) may change freely. */
const SOURCE_FOLDERS = ['src', 'proto', 'tsconfig'];
const SOURCE_FILES = ['tsconfig.json', 'tsconfig.build.json', 'buf.gen.yaml', 'buf.yaml'];
/** Made by builds. */
const GENERATED = new Set(['gen', 'node_modules', 'dist']);

/** Folders of all workspace packages, relative to the root. */
export function workspaceFolders() {
  return WORKSPACE_PARENTS.flatMap((parent) =>
    existsSync(join(ROOT, parent)) ? readdirSync(join(ROOT, parent)).map((name) => join(parent, name)) : [],
  ).filter((folder) => existsSync(join(ROOT, folder, 'package.json')));
}

/** Changes when `pnpm install` has something to do. */
export function installFingerprint() {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  const manifests = ['.', ...workspaceFolders()].map((folder) => join(folder, 'package.json'));
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests])
    hash.update(`\n${file}\n`).update(readFileSync(join(ROOT, file)));
  return hash.digest('hex');
}

/** Changes when a build has something to do: sizes and times of change of all sources. */
export function sourceFingerprint() {
  const hash = createHash('sha256').update(installFingerprint());
  const add = (path) => {
    const { size, mtimeMs } = statSync(path);
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  };
  const addFolder = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!GENERATED.has(entry.name)) addFolder(path);
      } else if (!entry.name.endsWith('.test.ts')) add(path);
    }
  };
  for (const folder of workspaceFolders().map((name) => join(ROOT, name))) {
    for (const name of SOURCE_FOLDERS) if (existsSync(join(folder, name))) addFolder(join(folder, name));
    for (const name of SOURCE_FILES) if (existsSync(join(folder, name))) add(join(folder, name));
  }
  return hash.digest('hex');
}

/** What the last set-up noted; empty when there was none. */
export function readStamp() {
  try {
    return JSON.parse(readFileSync(STAMP, 'utf8'));
  } catch {
    return {};
  }
}

/** @param {{ install: string, source?: string, outputs?: readonly string[] }} stamp outputs: folders that must exist, relative to the root */
export function writeStamp(stamp) {
  mkdirSync(dirname(STAMP), { recursive: true });
  writeFileSync(STAMP, `${JSON.stringify(stamp)}\n`);
}
