/**
 * Model repositories in local folders: which models there are, their configuration as written, their versions and
 * files. It judges layout and text only; what a configuration means is decided elsewhere. Every read looks at the disk
 * again, nothing is cached.
 */
import { open, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ServingError, type ModelFileDescription } from '@paceline/protocol';
import { MAX_CONFIG_BYTES, parseConfigText, type ConfigText } from './config-text/parse.js';
import { fingerprint, fingerprintPaths } from './fingerprint.js';
import { describeOnnxFile } from './onnx/describe.js';
import { safeExistingFile, safeJoin, safeSegment } from './safe-path.js';
import { folderNames, foldersWithModel, listFolder, listVersions, type FolderEntry, type IgnoredEntry } from './scan/listing.js';

const CONFIG_FILE = 'config.pbtxt';
const NO_CONFIG = { configText: undefined, path: undefined };
/** Largest label file, bytes. */
const MAX_LABEL_BYTES = 64 * 1024 * 1024;

/** A model as it lies in its folder. */
export interface RepositoryModel {
  readonly name: string;
  /** Absolute. */
  readonly folder: string;
  /** undefined where the model has no configuration file. */
  readonly configText: ConfigText | undefined;
  /** Numbers of its version folders, ascending. */
  readonly versions: readonly string[];
  /** Names of the entries of the version folders, any version, without duplicates. */
  readonly files: readonly string[];
  readonly ignored: readonly IgnoredEntry[];
  /** Changes when the configuration file does. */
  readonly configFingerprint: string;
}

/** Fingerprints of the parts of a model; equal as long as nothing has changed. */
export interface ObservedModel {
  /** Everything but the version folders. */
  readonly rest: string;
  /** By version number. */
  readonly versions: ReadonlyMap<string, string>;
  /** When the newest of its files changed, wall-clock milliseconds. */
  readonly changedMs: number;
}

export interface RepositoryListing {
  /** Names of the models, sorted; those found in several repositories included. */
  readonly models: readonly string[];
  readonly ignored: readonly IgnoredEntry[];
}

export interface ModelRepositoryOptions {
  /** Folders that hold model folders. */
  readonly roots: readonly string[];
  /** Use `configs/<name>.pbtxt` instead of config.pbtxt where a model has it. */
  readonly configName?: string;
}

export class LocalModelRepository {
  readonly #roots: readonly string[];
  readonly #configName: string | undefined;

  constructor(options: ModelRepositoryOptions) {
    this.#roots = [...new Set(options.roots.map((root) => resolve(root)))];
    this.#configName = options.configName === undefined ? undefined : safeSegment(options.configName, 'model config name');
  }

  /**
   * The names that {@link list} gives, without waiting: for answers that must not be older than the request. A root that
   * is gone has no models.
   */
  names(): string[] {
    return [...new Set(this.#roots.flatMap(folderNames))].sort();
  }

  /** @throws ServingError NOT_FOUND naming the root that is no readable folder */
  async list(): Promise<RepositoryListing> {
    const models = new Set<string>();
    const ignored: IgnoredEntry[] = [];
    for (const root of this.#roots) {
      const entries = await listFolder(root).catch((cause: unknown) => {
        throw new ServingError('NOT_FOUND', `failed to read model repository '${root}': it is not a readable folder`, { cause });
      });
      for (const { name, isFolder } of entries) {
        if (name.startsWith('.')) continue;
        if (isFolder) models.add(name);
        else if (/\.(?:onnx|pbtxt)$/.test(name))
          ignored.push({ entry: name, reason: 'it is one level too high: a repository holds model folders' });
      }
    }
    return { models: [...models].sort(), ignored };
  }

  /**
   * @param options ignoreConfig: leave the configuration file alone, even if it is broken
   * @returns undefined where no repository has a folder of that name
   * @throws ServingError INVALID_ARGUMENT for a name that is no folder name, a model in two repositories, and a
   * configuration that cannot be read, with one line a fault
   */
  async read(name: string, options: { readonly ignoreConfig?: boolean } = {}): Promise<RepositoryModel | undefined> {
    safeSegment(name, 'model name');
    const folders: string[] = [];
    for (const root of this.#roots) {
      const folder = join(root, name);
      if (await stat(folder).then((s) => s.isDirectory(), () => false)) folders.push(folder); // prettier-ignore
    }
    const folder = folders[0];
    if (folder === undefined) return undefined;
    if (folders.length > 1) {
      throw new ServingError('INVALID_ARGUMENT', 'model appears in two or more repositories', { reason: 'duplicate_model' });
    }
    const entries = await listFolder(folder);
    const { versions, ignored } = listVersions(name, entries, await foldersWithModel(folder, entries));
    const files = new Set<string>();
    for (const version of versions) for (const entry of await listFolder(join(folder, version))) files.add(entry.name);
    const { configText, path } = options.ignoreConfig === true ? NO_CONFIG : await this.#readConfig(name, folder);
    return {
      name,
      folder,
      configText,
      versions,
      files: [...files],
      ignored,
      configFingerprint: path === undefined ? '' : await fingerprintPaths([path]),
    };
  }

  async #readConfig(name: string, folder: string): Promise<{ configText: ConfigText | undefined; path: string | undefined }> {
    const variant = this.#configName === undefined ? [] : [`configs/${this.#configName}.pbtxt`];
    for (const file of [...variant, CONFIG_FILE]) {
      const path = join(folder, file);
      const info = await stat(path).catch(() => undefined);
      if (info === undefined) continue;
      const shown = `${name}/${file}`;
      if (info.size > MAX_CONFIG_BYTES) {
        throw new ServingError('INVALID_ARGUMENT', `${shown}: the file has ${info.size} bytes, at most ${MAX_CONFIG_BYTES} are read`);
      }
      const text = await readFile(path, 'utf8').catch((cause: unknown) => {
        throw new ServingError('INTERNAL', `failed to read ${shown}`, { cause });
      });
      return { configText: parseConfigText(text, shown), path };
    }
    return { configText: undefined, path: undefined };
  }

  /**
   * Absolute path of a version's model file. `filename` may name a folder, which then holds `model.onnx` and its external
   * data; the file may be a symbolic link to anywhere, since whoever wrote the repository placed it.
   * @param filename from configuration text
   * @throws ServingError INVALID_ARGUMENT for a name that leaves the version's folder, INTERNAL where nothing is there
   */
  async modelFile(model: RepositoryModel, version: string, filename: string): Promise<string> {
    const folder = join(model.folder, safeSegment(version, 'version'));
    const path = safeJoin(folder, filename, 'default_model_filename');
    const shown = `${model.name}/${version}/${filename}`;
    const info = await stat(path).catch(() => undefined);
    if (info?.isFile()) return path;
    if (info?.isDirectory()) {
      const inner = join(path, 'model.onnx');
      if (await stat(inner).then((s) => s.isFile(), () => false)) return inner; // prettier-ignore
      throw new ServingError('INTERNAL', `failed to stat file ${shown}/model.onnx`, { reason: 'model_file' });
    }
    const names = (await listFolder(folder)).map((entry) => entry.name).join(', ');
    throw new ServingError(
      'INTERNAL',
      `failed to stat file ${shown}; the folder ${model.name}/${version} holds ${names === '' ? 'nothing' : names}`,
      {
        reason: 'model_file',
      },
    );
  }

  /** What the version's ONNX file says about itself. @throws ServingError see {@link describeOnnxFile} */
  describe(model: RepositoryModel, version: string, path: string): Promise<ModelFileDescription> {
    return describeOnnxFile(path, `${model.name}/${version}/${path.slice(join(model.folder, version).length + 1)}`);
  }

  /**
   * The lines of a label file of the model's folder; a last empty line does not count.
   * @throws ServingError INVALID_ARGUMENT when it is missing, too large or leads out of the folder
   */
  async labels(model: RepositoryModel, filename: string): Promise<string[]> {
    const path = await safeExistingFile(model.folder, filename, 'label_filename');
    if (path === undefined)
      throw new ServingError('INVALID_ARGUMENT', `label file '${filename}' of model '${model.name}' does not exist in the model's folder`);
    const { size } = await stat(path);
    if (size > MAX_LABEL_BYTES)
      throw new ServingError(
        'INVALID_ARGUMENT',
        `label file '${filename}' of model '${model.name}' is larger than ${MAX_LABEL_BYTES} bytes`,
      );
    // Piece by piece: a large file must not hold up the requests of other models.
    const file = await open(path);
    const lines: string[] = [];
    for await (const line of file.readLines()) lines.push(line);
    return lines;
  }

  /**
   * The bytes of a file of the model's `warmup` folder.
   * @param filename from configuration text
   * @throws ServingError INVALID_ARGUMENT when it is missing, larger than `maxBytes` or leads out of that folder
   */
  async warmupFile(model: RepositoryModel, filename: string, maxBytes: number): Promise<Uint8Array> {
    const folder = join(model.folder, 'warmup');
    const shown = `warmup data file '${model.name}/warmup/${filename}'`;
    const path = await safeExistingFile(folder, filename, 'input_data_file');
    if (path === undefined) throw new ServingError('INVALID_ARGUMENT', `${shown} does not exist`, { reason: 'warmup_data' });
    const { size } = await stat(path);
    if (size > maxBytes) {
      throw new ServingError('INVALID_ARGUMENT', `${shown} has ${size} bytes, at most ${maxBytes} fit`, { reason: 'warmup_data' });
    }
    return readFile(path);
  }

  /**
   * Every model with fingerprints of its parts, for finding out what has changed. Those of a model in two repositories
   * are of the first, and change when it is in one again.
   * @throws ServingError NOT_FOUND naming the root that is no readable folder
   */
  async observe(): Promise<Map<string, ObservedModel>> {
    const { models } = await this.list();
    const observed = new Map<string, ObservedModel>();
    for (const name of models) {
      const model = await this.#observeModel(name).catch(() => undefined);
      // Gone between the two looks.
      if (model !== undefined) observed.set(name, model);
    }
    return observed;
  }

  async #observeModel(name: string): Promise<ObservedModel | undefined> {
    const found: { folder: string; entries: FolderEntry[] }[] = [];
    for (const root of this.#roots) {
      const folder = join(root, name);
      const entries = await listFolder(folder).catch(() => undefined);
      if (entries !== undefined) found.push({ folder, entries });
    }
    const first = found[0];
    if (first === undefined) return undefined;
    const { folder, entries } = first;
    const numbers = new Set(listVersions(name, entries).versions);
    const others = entries.filter((entry) => !numbers.has(entry.name)).map((entry) => join(folder, entry.name));
    const rest = await fingerprint(others);
    let { changedMs } = rest;
    const versions = new Map<string, string>();
    for (const version of numbers) {
      const print = await fingerprint([join(folder, version)]);
      versions.set(version, print.text);
      changedMs = Math.max(changedMs, print.changedMs);
    }
    return { rest: `${found.length} ${rest.text}`, versions, changedMs };
  }

  /** Changes when a file of the version, or one of the given files of the model's folder, does. */
  versionFingerprint(model: RepositoryModel, version: string, files: readonly string[] = []): Promise<string> {
    return fingerprintPaths([join(model.folder, version), ...files.map((file) => join(model.folder, file))]);
  }
}
