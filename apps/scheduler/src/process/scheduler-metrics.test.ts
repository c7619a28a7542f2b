/** The page of the metrics says of each family of a scheduler of a cluster what it is, and lists no other. */
import { expect, test } from '@jest/globals';
import { codeOf, readPage, tablesOf } from '@paceline/testkit';
import type { ClusterScheduler } from './cluster-scheduler.js';
import { schedulerFamilies } from './scheduler-metrics.js';

test('the page lists the families of a scheduler', () => {
  const scheduler = {
    partitions: { owned: [1], unopened: 0 },
    placement: { owns: false },
    leases: { losses: 0 },
    unfinished: 0,
  } as unknown as ClusterScheduler;
  const families = schedulerFamilies(
    () => scheduler,
    () => ({ entries: 0, requests: 0, undecodable: 0 }),
    2,
  );
  const table = tablesOf(readPage('observability.md')).find(({ heading }) => heading === 'The scheduler of a cluster');
  const listed = table?.rows.map(({ name = '', type, labels }) => ({ name: codeOf(name)[0], type, labels }));
  const shown = families.map(({ name, type, read }) => {
    const labels = new Set([...read()].map((series) => Object.keys(series.labels).join(', ')));
    expect(labels.size).toBe(1);
    return { name, type, labels: [...labels][0] };
  });
  expect(listed).toEqual(shown);
});
