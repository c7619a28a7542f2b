/**
 * The labels that name a model version in every series, with the tags its configuration adds. One list is made for each
 * scrape, so that all families of a scrape show the same models.
 */
import type { ModelStatistics, StatisticsRegistry } from '../statistics.js';
import type { Labels } from './scraped-metric.js';

/** Tags by name, e.g. from `metric_tags` of the configuration. */
export type TagsOf = (model: string, version: string) => Readonly<Record<string, string>> | undefined;

export class LabelledModels implements Iterable<readonly [ModelStatistics, Labels]> {
  #models: readonly (readonly [ModelStatistics, Labels])[] = [];

  constructor(
    private readonly statistics: StatisticsRegistry,
    private readonly tagsOf: TagsOf | undefined,
  ) {}

  /** Takes note of what is loaded now. */
  refresh(): void {
    this.#models = Array.from(this.statistics.all(), (s) => [s, this.#labelsOf(s)] as const);
  }

  [Symbol.iterator](): Iterator<readonly [ModelStatistics, Labels]> {
    return this.#models[Symbol.iterator]();
  }

  /** A tag `team` becomes the label `_team`. */
  #labelsOf({ model, version }: ModelStatistics): Labels {
    const labels: Record<string, string> = { model, version };
    for (const [tag, value] of Object.entries(this.tagsOf?.(model, version) ?? {}))
      labels[`_${tag.replace(/[^A-Za-z0-9_]/g, '_')}`] = value;
    return labels;
  }
}
