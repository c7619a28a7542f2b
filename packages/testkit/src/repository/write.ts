/** Lays out model repositories for tests, in a given folder or a temporary one that the test removes. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface RepositoryModelFiles {
  readonly name: string;
  /** Text of config.pbtxt; left out = the model has none. */
  readonly config?: string;
  /** Per version folder: the bytes of model.onnx, or files by relative path. */
  readonly versions?: Readonly<Record<string, Uint8Array | Readonly<Record<string, Uint8Array | string>>>>;
  /** More files of the model folder, by relative path, e.g. labels. */
  readonly files?: Readonly<Record<string, Uint8Array | string>>;
}

export interface TemporaryRepository {
  /** Absolute path of the repository. */
  readonly root: string;
  /** Deletes it; call it in `afterEach`. */
  remove(): void;
}

function write(path: string, content: Uint8Array | string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** Writes the models below `directory` and returns it. Existing files of other names are left alone. */
export function writeModelRepository(directory: string, models: readonly RepositoryModelFiles[]): string {
  mkdirSync(directory, { recursive: true });
  for (const model of models) {
    const folder = join(directory, model.name);
    mkdirSync(folder, { recursive: true });
    if (model.config !== undefined) write(join(folder, 'config.pbtxt'), model.config);
    for (const [path, content] of Object.entries(model.files ?? {})) write(join(folder, path), content);
    for (const [version, content] of Object.entries(model.versions ?? {})) {
      mkdirSync(join(folder, version), { recursive: true });
      const files = content instanceof Uint8Array ? { 'model.onnx': content } : content;
      for (const [path, bytes] of Object.entries(files)) write(join(folder, version, path), bytes);
    }
  }
  return directory;
}

/** The same in a fresh folder under the system's temporary folder. */
export function temporaryModelRepository(models: readonly RepositoryModelFiles[] = []): TemporaryRepository {
  const root = mkdtempSync(join(tmpdir(), 'paceline-repository-'));
  writeModelRepository(root, models);
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}
