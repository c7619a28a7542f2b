/**
 * Finds out which GPUs ONNX Runtime can use here: its CUDA provider must be installed, the driver must name GPUs, and the
 * environment must leave some visible. A machine without the provider pays nothing, since the driver is not asked.
 */
import { simulatedGpus, type GpuInventory } from './gpus.js';
import { parseNvidiaSmi, runNvidiaSmi } from './nvidia-smi.js';
import { hasProvider, providerFile, runtimeFolder } from './provider-libraries.js';
import { hiddenBy, visibleGpus } from './visible-gpus.js';

export interface GpuSources {
  /** GPUs to pretend to have; real ones are not looked for then. 0 = none. */
  readonly simulated?: number;
  /** Answer of the driver, see {@link runNvidiaSmi}. */
  readonly nvidiaSmi?: () => Promise<string>;
  /** Folder of ONNX Runtime's libraries. */
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Never rejects: what stands in the way is told when a model asks for a GPU. */
export async function detectGpus(sources: GpuSources = {}): Promise<GpuInventory> {
  const { simulated = 0, nvidiaSmi = runNvidiaSmi, folder = runtimeFolder(), env = process.env } = sources;
  if (simulated > 0) return simulatedGpus(simulated);
  const tensorRt = hasProvider('tensorrt', folder);
  const none = (absence: string): GpuInventory => ({ gpus: [], simulated: false, absence, tensorRt });
  if (!hasProvider('cuda', folder)) return none(`ONNX Runtime has no CUDA provider library here (${providerFile('cuda')})`);
  const hidden = hiddenBy(env);
  if (hidden !== undefined) return none(hidden);
  try {
    const installed = parseNvidiaSmi(await nvidiaSmi());
    if (installed.length === 0) return none('nvidia-smi found no GPU');
    const gpus = visibleGpus(installed, env);
    if (gpus.length > 0) return { gpus, simulated: false, absence: '', tensorRt };
    return none(`CUDA_VISIBLE_DEVICES is '${env['CUDA_VISIBLE_DEVICES']}', which names none of ${installed.length}`);
  } catch (error) {
    return none(error instanceof Error ? error.message : String(error));
  }
}
