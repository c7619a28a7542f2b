/**
 * A metric whose series are read when somebody scrapes, from counters that exist anyway. Nothing is kept here, so counting
 * costs the hot path nothing twice, and the series of a model that is gone vanish with its counters.
 */
import { Gauge, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';

export type Labels = Readonly<Record<string, string>>;

export interface Series {
  readonly labels: Labels;
  readonly value: number;
  /** Where a series has another name than its family, e.g. `<family>_bucket`. */
  readonly metricName?: string;
}

export interface ScrapedMetricOptions {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly read: () => Iterable<Series>;
}

/** How prom-client calls the types of a family. */
type MetricType = MetricObjectWithValues<MetricValue<string>>['type'];

export class ScrapedMetric extends Gauge {
  readonly #options: ScrapedMetricOptions;
  #taken: Series[] | undefined;

  constructor(registry: Registry, options: ScrapedMetricOptions) {
    super({ name: options.name, help: options.help, registers: [registry] });
    this.#options = options;
  }

  /** Reads the series now, for the next {@link get}: what is taken together belongs to one moment. */
  take(): void {
    this.#taken = [...this.#options.read()];
  }

  /** A histogram or summary is many series a model: too much to be read all at once. */
  get isSmall(): boolean {
    return this.#options.type === 'counter' || this.#options.type === 'gauge';
  }

  override async get(): Promise<MetricObjectWithValues<MetricValue<string>>> {
    const { name, help, type, read } = this.#options;
    const values = this.#taken ?? [...read()];
    this.#taken = undefined;
    // prom-client declares types as numbers and writes them as words.
    return { name, help, type: type as unknown as MetricType, aggregator: 'sum', values, collect: () => undefined };
  }
}
