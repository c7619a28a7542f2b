/** Finds everything that is wrong with model repositories, with the judges that the server itself asks when it loads. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { LocalModelRepository } from '@paceline/model-repository';
import { RepositoryModelSource, type Finding, type Inspection, type RepositorySourceOptions } from '@paceline/scheduler';
import { gpusFor, judgeBackendOptions, type WorkerDevices } from '@paceline/worker';

/** A finding with the model it is about, and its file as a path that can be opened. */
export interface CheckFinding extends Finding {
  /** undefined for what concerns a repository as a whole. */
  readonly model: string | undefined;
}

export interface CheckReport {
  /** Every model that was looked at, sorted. */
  readonly models: readonly string[];
  readonly errors: readonly CheckFinding[];
  readonly warnings: readonly CheckFinding[];
}

export interface CheckOptions extends RepositorySourceOptions {
  readonly configName?: string;
  /** Of this machine: what cannot be loaded with them is remarked. */
  readonly devices: WorkerDevices;
}

interface Target {
  readonly root: string;
  /** One model of it; undefined = all. */
  readonly only: string | undefined;
}

/** @param directories repositories, or folders of single models */
export async function checkRepositories(directories: readonly string[], options: CheckOptions): Promise<CheckReport> {
  const targets = await Promise.all(directories.map(targetOf));
  const repositories = targets.filter(({ only }) => only === undefined).map(({ root }) => root);
  const check = new Check(options);
  // Each root for itself: one that cannot be read must not hide the others.
  for (const root of repositories) await check.entries(root);
  // All of them together: a name that two of them have is an error.
  await check.models(repositories, undefined);
  for (const { root, only } of targets) if (only !== undefined) await check.models([root], [only]);
  return check.report();
}

class Check {
  readonly #models = new Set<string>();
  readonly #errors: CheckFinding[] = [];
  readonly #warnings: CheckFinding[] = [];

  constructor(private readonly options: CheckOptions) {}

  report(): CheckReport {
    return { models: [...this.#models].sort(), errors: this.#errors, warnings: this.#warnings };
  }

  async entries(root: string): Promise<void> {
    try {
      await addDistinct(this.#warnings, undefined, [root], await this.#source([root]).entries());
    } catch (error) {
      await addDistinct(this.#errors, undefined, [root], [repositoryFinding((error as Error).message)]);
    }
  }

  /** @param names undefined = all models of the roots */
  async models(roots: readonly string[], names: readonly string[] | undefined): Promise<void> {
    const source = this.#source(roots);
    for (const model of names ?? source.names()) {
      this.#models.add(model);
      const inspection = await source.inspect(model);
      await addDistinct(this.#errors, model, roots, [...inspection.errors, ...this.#options(inspection, 'issues')]);
      const remarks = [...this.#options(inspection, 'warnings'), ...this.#options(inspection, 'missing')];
      await addDistinct(this.#warnings, model, roots, [...inspection.warnings, ...remarks]);
    }
  }

  /** What the worker would refuse or remark when it starts the instances. */
  #options({ configs, locate }: Inspection, kind: 'issues' | 'warnings' | 'missing'): Finding[] {
    return configs.flatMap((config) => judgeBackendOptions(config, this.options.devices)[kind].map(locate));
  }

  #source(roots: readonly string[]): RepositoryModelSource {
    const { configName, devices, ...options } = this.options;
    return new RepositoryModelSource(new LocalModelRepository({ roots, ...(configName === undefined ? {} : { configName }) }), {
      ...options,
      gpus: (backend) => gpusFor(devices.gpus, backend),
    });
  }
}

/** A folder with a configuration or a version in it is one model. */
async function targetOf(directory: string): Promise<Target> {
  const path = resolve(directory);
  const names: readonly string[] = await readdir(path).catch(() => []);
  const isModel = names.includes('config.pbtxt') || names.some((name) => /^\d+$/.test(name));
  return isModel ? { root: dirname(path), only: basename(path) } : { root: path, only: undefined };
}

function repositoryFinding(message: string): Finding {
  return {
    file: undefined,
    line: undefined,
    column: undefined,
    field: '',
    message,
    expected: undefined,
    found: undefined,
    hint: undefined,
  };
}

/** Two versions with one configuration have its faults in common. */
async function addDistinct(
  list: CheckFinding[],
  model: string | undefined,
  roots: readonly string[],
  findings: readonly Finding[],
): Promise<void> {
  for (const finding of findings) {
    const file = finding.file === undefined ? undefined : await openable(roots, finding.file);
    const known = list.some(
      (other) =>
        other.model === model &&
        other.message === finding.message &&
        other.field === finding.field &&
        other.line === finding.line &&
        other.file === file,
    );
    if (!known) list.push({ ...finding, model, file });
  }
}

async function openable(roots: readonly string[], file: string): Promise<string> {
  for (const root of roots) {
    const path = join(root, file);
    if (await stat(path).then(() => true, () => false)) return path; // prettier-ignore
  }
  return file;
}
