/**
 * Lays the files that came with a load request into a private folder of this process, as a repository of one model.
 * Invariant: nothing is written before every name and the total size were judged, and nothing outside the folder.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { safeJoin, safeSegment } from '@paceline/model-repository';
import { ServingError } from '@paceline/protocol';

/** What one load request may bring. */
export interface UploadLimits {
  readonly maxBytes: number;
  readonly maxFiles: number;
}

export const UPLOAD_LIMITS: UploadLimits = { maxBytes: 1024 * 1024 * 1024, maxFiles: 1000 };

export interface UploadedRepository {
  /** Readable by this user alone. */
  readonly root: string;
  /** Deletes it. Never rejects. */
  remove(): Promise<void>;
}

/**
 * @param files by path below the model's folder
 * @param parent the folder that takes the new one; it has to exist
 * @throws ServingError INVALID_ARGUMENT for a name that leaves the folder, RESOURCE_EXHAUSTED above the limits and
 * where the disk cannot take the files
 */
export async function layOutFiles(
  model: string,
  files: ReadonlyMap<string, Uint8Array>,
  limits: UploadLimits = UPLOAD_LIMITS,
  parent = tmpdir(),
): Promise<UploadedRepository> {
  safeSegment(model, 'model name');
  checkSize(model, files, limits);
  for (const path of files.keys()) safeJoin('/', path, 'load parameter file:');
  const root = await makeFolder(model, parent);
  const uploaded = uploadedBefore(root);
  try {
    await mkdir(join(root, model), { mode: 0o700 });
    for (const [path, bytes] of files) {
      const target = safeJoin(join(root, model), path, 'load parameter file:');
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await writeFile(target, bytes, { flag: 'wx', mode: 0o600 });
    }
  } catch (cause) {
    await uploaded.remove();
    throw notStored(model, cause);
  }
  return uploaded;
}

/** What {@link layOutFiles} has made before. */
export function uploadedBefore(root: string): UploadedRepository {
  return { root, remove: () => rm(root, { recursive: true, force: true }).catch(() => undefined) };
}

function makeFolder(model: string, parent: string): Promise<string> {
  return mkdtemp(join(parent, 'paceline-model-')).catch((cause: unknown) => {
    throw notStored(model, cause);
  });
}

function notStored(model: string, cause: unknown): ServingError {
  const why = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
  return new ServingError('RESOURCE_EXHAUSTED', `the files of the load request for '${model}' could not be stored: ${why}`, {
    reason: 'load_files',
    cause,
  });
}

function checkSize(model: string, files: ReadonlyMap<string, Uint8Array>, { maxBytes, maxFiles }: UploadLimits): void {
  let bytes = 0;
  for (const file of files.values()) bytes += file.byteLength;
  const over =
    files.size > maxFiles
      ? `${files.size} files, at most ${maxFiles}`
      : bytes > maxBytes
        ? `${bytes} bytes of files, at most ${maxBytes}`
        : undefined;
  if (over === undefined) return;
  throw new ServingError('RESOURCE_EXHAUSTED', `the load request for '${model}' brings ${over} are taken`, {
    reason: 'load_files',
    httpStatus: 413,
  });
}
