// Adds up checks. Jest's own summary lines are read from the output, where they stand also when turbo replays a cached run.

const SUMMARY = /^(?:\S+: )?Tests:\s+(.*)$/;

export function createTally() {
  const results = [];
  let check;
  let rest = '';
  const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
  return {
    get failed() {
      return total('failed');
    },
    /** @param {boolean} isSuite its tests are counted one by one */
    begin(name, isSuite) {
      check = { name, isSuite, passed: 0, failed: 0 };
      rest = '';
    },
    /** Takes the output of the current check in pieces of any size. */
    read(text) {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        const counts = SUMMARY.exec(line)?.[1];
        if (counts === undefined || !check.isSuite) continue;
        check.passed += Number(/(\d+) passed/.exec(counts)?.[1] ?? 0);
        check.failed += Number(/(\d+) failed/.exec(counts)?.[1] ?? 0);
      }
    },
    /** @returns {boolean} whether the check passed; a suite that fails without a failed test counts as one failure. */
    end(succeeded) {
      if (!check.isSuite && succeeded) check.passed += 1;
      if (!succeeded && check.failed === 0) check.failed += 1;
      results.push(check);
      return check.failed === 0;
    },
    /** One line a check, and as the last line the sum. */
    summary() {
      const lines = results.map(({ name, passed, failed }) => `  ${name.padEnd(14)}${passed} passed, ${failed} failed`);
      return ['', ...lines, '', `${total('passed')} passed, ${total('failed')} failed`].join('\n');
    },
  };
}
