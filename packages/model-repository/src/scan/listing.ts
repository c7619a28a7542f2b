/** Reads folders of a repository and says of each entry whether it is a model or a version, and if not, why. */
import { readdirSync, statSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** An entry that is not used, and the reason, for the report of a load. */
export interface IgnoredEntry {
  /** Relative to the repository, e.g. `resnet/01`. */
  readonly entry: string;
  readonly reason: string;
}

export interface FolderEntry {
  readonly name: string;
  readonly isFolder: boolean;
}

/** Entries of a folder, symbolic links followed, by name. Broken links count as files. */
export async function listFolder(path: string): Promise<FolderEntry[]> {
  const entries = await readdir(path, { withFileTypes: true });
  const listed = entries.map(async (entry) => ({
    name: entry.name,
    isFolder: entry.isDirectory() || (entry.isSymbolicLink() && (await stat(join(path, entry.name)).then((s) => s.isDirectory(), () => false))),
  })); // prettier-ignore
  return (await Promise.all(listed)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Names of the folders in `path`, hidden ones left out, links followed; none where `path` cannot be read. */
export function folderNames(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => !entry.name.startsWith('.'))
      .filter(
        (entry) =>
          entry.isDirectory() ||
          (entry.isSymbolicLink() && (statSync(join(path, entry.name), { throwIfNoEntry: false })?.isDirectory() ?? false)),
      )
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

/** Digits alone; leading zeros and too large numbers are told apart later. */
const VERSION_NAME = /^\d+$/;
/** A file that some backend would run. */
const MODEL_FILE = /^model\.(?:onnx|plan|pt|pt2|xml|py|graphdef|savedmodel)$/;
/** What somebody may have meant as a version: `v1`, `1.0`, `version-2`, `1_old`. */
const LIKE_A_VERSION = /^(?:v|ver|version)?[-_. ]?\d+(?:[-_. ].*)?$/i;

export interface VersionListing {
  /** Ascending. */
  readonly versions: readonly string[];
  readonly ignored: readonly IgnoredEntry[];
}

/**
 * Sorts the entries of a model's folder into versions and what is ignored although somebody may count on it. Other
 * folders (`warmup`, `samples`, ...) belong to the model in ways of their own.
 * @param holdsModel names of the folders without a number that hold a model file
 */
export function listVersions(model: string, entries: readonly FolderEntry[], holdsModel: ReadonlySet<string> = new Set()): VersionListing {
  const versions: string[] = [];
  const ignored: IgnoredEntry[] = [];
  const ignore = (name: string, reason: string): void => void ignored.push({ entry: `${model}/${name}`, reason });
  for (const { name, isFolder } of entries) {
    if (!isFolder) {
      if (MODEL_FILE.test(name)) ignore(name, `a model file belongs in a version folder: ${model}/1/${name}`);
    } else if (!VERSION_NAME.test(name)) {
      if (holdsModel.has(name) || LIKE_A_VERSION.test(name)) ignore(name, 'the name of a version folder must be a number');
    } else if (name.length > 1 && name.startsWith('0')) {
      ignore(name, `the name of a version folder must not begin with 0: rename it to ${BigInt(name)}`);
    } else if (BigInt(name) > 2n ** 63n - 1n) {
      ignore(name, 'the number of a version must fit into 64 bits');
    } else {
      versions.push(name);
    }
  }
  versions.sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
  return { versions, ignored };
}

/** Folders that are no versions and yet hold a model file, so that somebody may count on them. */
export async function foldersWithModel(folder: string, entries: readonly FolderEntry[]): Promise<Set<string>> {
  const found = new Set<string>();
  for (const { name, isFolder } of entries) {
    if (!isFolder || name.startsWith('.') || VERSION_NAME.test(name)) continue;
    const inside = await readdir(join(folder, name)).catch(() => []);
    if (inside.some((file) => MODEL_FILE.test(file))) found.add(name);
  }
  return found;
}
