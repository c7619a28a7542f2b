/** The page of the metrics says of each family of a gateway of a cluster what it is, and lists no other. */
import { expect, test } from '@jest/globals';
import { codeOf, readPage, tablesOf } from '@paceline/testkit';
import { clusterMetrics } from './cluster-metrics.js';

test('the page lists the families of a gateway', () => {
  const families = clusterMetrics({
    links: { schedulers: [], workers: [] },
    owners: { count: 0 },
    redis: { up: true },
    queue: { counters: { entries: 0, requests: 0, resent: 0, failures: 0 }, waiting: 0 },
  });
  const table = tablesOf(readPage('observability.md')).find(({ heading }) => heading === 'The gateway of a cluster');
  const listed = table?.rows.map(({ name = '', type, labels }) => ({ name: codeOf(name)[0], type, labels }));
  const shown = families.map(({ name, type, read }) => {
    const labels = new Set([...read()].map((series) => Object.keys(series.labels).join(', ')));
    expect(labels.size).toBe(1);
    return { name, type, labels: [...labels][0] };
  });
  expect(listed).toEqual(shown);
});
