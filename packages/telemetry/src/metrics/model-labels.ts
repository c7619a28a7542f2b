/** The labels that name a model version in every series, with the tags its configuration adds. */
import type { ModelStatistics, StatisticsRegistry } from '../statistics.js';
import type { Labels } from './scraped-metric.js';

/** Tags by name, e.g. from `metric_tags` of the configuration. */
export type TagsOf = (model: string, version: string) => Readonly<Record<string, string>> | undefined;

/** Every model version with its labels; a tag `team` becomes the label `_team`. */
export function* labelled(statistics: StatisticsRegistry, tagsOf: TagsOf | undefined): Iterable<readonly [ModelStatistics, Labels]> {
  for (const s of statistics.all()) {
    const labels: Record<string, string> = { model: s.model, version: s.version };
    for (const [tag, value] of Object.entries(tagsOf?.(s.model, s.version) ?? {})) labels[`_${tag.replace(/[^A-Za-z0-9_]/g, '_')}`] = value;
    yield [s, labels];
  }
}
