/**
 * A cluster with its load and its books: what every test that breaks something begins and ends with. Knows when a cluster
 * is well: all processes say that they serve, and each model answers by each gateway.
 */
import { temporaryModelRepository, type RepositoryModelFiles, type TemporaryRepository } from '@paceline/testkit';
import { within } from '../support/until.js';
import { Books } from './books.js';
import { ClusterLoad } from './cluster-load.js';
import { ClusterProcess, type ClusterSize } from './cluster-process.js';
import { QUESTIONED_MODELS } from './questions.js';

export const MODELS = QUESTIONED_MODELS.map(({ name }) => name);

/** From a fault undone until all processes serve: the start of a process on a busy machine, and a load of all models. */
const SERVES_WITHIN_MS = 20_000;
const ANSWERS_WITHIN_MS = 10_000;
const ENOUGH = 5;

export interface ShakenOptions {
  readonly seed: number;
  /** Of each request. */
  readonly deadlineMs: number;
  /** Of each kind of client at each gateway; 1 without it. */
  readonly copies?: number;
  /** Models beside those that the load asks. */
  readonly more?: readonly RepositoryModelFiles[];
}

export class ShakenCluster {
  readonly books: Books;
  readonly load: ClusterLoad;

  private constructor(
    readonly repository: TemporaryRepository,
    readonly cluster: ClusterProcess,
    { seed, deadlineMs, copies = 1 }: ShakenOptions,
  ) {
    this.books = new Books(deadlineMs);
    this.load = new ClusterLoad(this.books, cluster.members('gateway'), seed, copies);
  }

  /**
   * Starts it and its load, and waits until it is well.
   * @param env beside this process's own
   */
  static async start(
    size: ClusterSize,
    options: ShakenOptions,
    flags: readonly string[] = [],
    env: NodeJS.ProcessEnv = {},
  ): Promise<ShakenCluster> {
    const repository = temporaryModelRepository([...QUESTIONED_MODELS, ...(options.more ?? [])]);
    const all = [`--model-repository=${repository.root}`, `--request-timeout-ms=${options.deadlineMs}`, ...flags];
    const cluster = await ClusterProcess.start(size, all, env);
    const shaken = new ShakenCluster(repository, cluster, options);
    shaken.load.start();
    await shaken.answers();
    return shaken;
  }

  /** Resolves when everything serves, and answers. */
  async well(): Promise<void> {
    await this.cluster.serves(SERVES_WITHIN_MS);
    await this.answers();
  }

  /** Resolves when each model has answered by each gateway, from now on. */
  async answers(gateways: readonly number[] = this.cluster.members('gateway').map(({ index }) => index)): Promise<void> {
    const all = gateways.flatMap((gateway) => MODELS.map((model) => this.books.answered(ENOUGH, gateway, model)));
    await within('every model answers by every gateway', ANSWERS_WITHIN_MS, Promise.all(all));
  }

  /** Ends it without ado. */
  async end(): Promise<void> {
    const closing = this.load.close();
    await this.cluster.stop('SIGKILL');
    await closing;
    this.cluster.remove();
    this.repository.remove();
  }
}
