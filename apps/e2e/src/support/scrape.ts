/** One reading of a server's metrics, to look series up by name and some of their labels. */

interface Series {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

type LabelValues = Readonly<Record<string, string>>;

export class Scrape {
  readonly #series: readonly Series[];

  private constructor(readonly text: string) {
    this.#series = text.split('\n').flatMap((line) => {
      const [, name, labels = '', value] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
      if (name === undefined || value === undefined) return [];
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label!, text!] as const);
      return [{ name, labels: new Map(pairs), value: Number(value) }];
    });
  }

  /** @param metrics `host:port` */
  static async of(metrics: string): Promise<Scrape> {
    return new Scrape(await (await fetch(`http://${metrics}/metrics`)).text());
  }

  /** The sum over all series of that name with these labels; 0 where there is none. */
  sum(name: string, labels: LabelValues = {}): number {
    return this.#find(name, labels).reduce((total, { value }) => total + value, 0);
  }

  /** @throws Error unless there is exactly one such series */
  value(name: string, labels: LabelValues = {}): number {
    const found = this.#find(name, labels);
    if (found.length !== 1) throw new Error(`${found.length} series ${name} with ${JSON.stringify(labels)}, expected one`);
    return found[0]!.value;
  }

  /** Requests of a model that came, without those whose end or whereabouts are counted: 0 in a server that counts right. */
  balance(model: string): number {
    const of = (name: string): number => this.sum(name, { model });
    return (
      of('paceline_received_requests_total') -
      of('nv_inference_request_success') -
      of('paceline_failed_requests_total') -
      of('paceline_refused_requests_total') -
      of('paceline_in_flight_requests')
    );
  }

  #find(name: string, labels: LabelValues): Series[] {
    return this.#series.filter(
      (series) => series.name === name && Object.entries(labels).every(([key, value]) => series.labels.get(key) === value),
    );
  }
}
