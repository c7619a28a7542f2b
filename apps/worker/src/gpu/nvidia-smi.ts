/**
 * Asks NVIDIA's driver for the GPUs of this machine, through the program that comes with it and is put into every
 * container that is given a GPU. Nothing here decides what is done with them.
 */
import { execFile } from 'node:child_process';

/** One GPU of the machine. */
export interface InstalledGpu {
  /** In the order of the bus, from 0. */
  readonly index: number;
  /** `GPU-` and a UUID. */
  readonly uuid: string;
  /** 0 = the driver does not say, as where GPU and processor share their memory. */
  readonly memoryBytes: number;
  readonly name: string;
}

const QUERY = ['--query-gpu=index,uuid,memory.total,name', '--format=csv,noheader,nounits'];
/** A driver that starts up for it takes some seconds. */
const LIMIT_MS = 20_000;
const MIB = 1024 * 1024;

/** @throws Error saying in a clause why there is no answer */
export function runNvidiaSmi(): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('nvidia-smi', QUERY, { timeout: LIMIT_MS, encoding: 'utf8' }, (error, out, err) => {
      if (error === null) return resolve(out);
      if (error.code === 'ENOENT')
        return reject(new Error('there is no nvidia-smi, so that the machine has no NVIDIA driver or the container was given no GPU'));
      if (error.killed === true) return reject(new Error(`nvidia-smi did not answer within ${LIMIT_MS / 1000} s`));
      reject(new Error(`nvidia-smi failed: ${firstLine(out) || firstLine(err) || error.message}`));
    });
  });
}

const firstLine = (text: string): string => text.trim().split('\n', 1)[0]!.trim();

/** @throws Error naming a line that is none */
export function parseNvidiaSmi(text: string): InstalledGpu[] {
  const lines = text.split('\n').map((line) => line.trim());
  return lines
    .filter((line) => line !== '' && line !== 'No devices were found')
    .map((line) => {
      const [index = '', uuid = '', memoryMib = '', ...name] = line.split(',').map((cell) => cell.trim());
      if (!/^\d+$/.test(index) || !uuid.startsWith('GPU-') || name.length === 0)
        throw new Error(`nvidia-smi answered '${line}', which names no GPU`);
      return { index: Number(index), uuid, memoryBytes: /^\d+$/.test(memoryMib) ? Number(memoryMib) * MIB : 0, name: name.join(', ') };
    });
}
