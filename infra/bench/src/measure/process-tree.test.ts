// Accounts of CPU time and memory: the tree is found and the fields are the right ones.
import { describe, expect, test } from '@jest/globals';
import { parseStat, treeCpuSeconds, treeMemory, treeOf } from './process-tree.js';

describe('process tree', () => {
  test('reads the parent and the CPU time behind a name with brackets and spaces', () => {
    const text = '42 (a (b) c) S 7 42 42 0 -1 4194560 1 0 0 0 150 25 900 900 20 0 1 0 5 0 0';
    expect(parseStat(text)).toEqual({ pid: 42, parent: 7, cpuTicks: 175 });
  });

  test('takes descendants and nobody else', () => {
    const stat = (pid: number, parent: number) => ({ pid, parent, cpuTicks: 0 });
    const tree = treeOf(2, [stat(1, 0), stat(2, 1), stat(3, 2), stat(4, 3), stat(5, 1)]);
    expect(tree.map(({ pid }) => pid)).toEqual([2, 3, 4]);
  });

  const onLinux = process.platform === 'linux' ? test : test.skip;
  onLinux('knows this process', () => {
    const usage = process.cpuUsage();
    expect(treeCpuSeconds(process.pid)).toBeCloseTo((usage.user + usage.system) / 1e6, 0);
    expect(treeMemory(process.pid).pssBytes).toBeGreaterThan(10e6);
    expect(treeMemory(process.pid).pssBytes).toBeLessThan(2 * process.memoryUsage.rss() + 100e6);
  });

  test('says nothing rather than zero about a process that is not there', () => {
    expect(treeCpuSeconds(2 ** 30)).toBeNaN();
    expect(treeMemory(2 ** 30).pssBytes).toBeNaN();
  });
});
