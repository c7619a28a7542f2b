// A set-up that cannot go on, in words for the person at the terminal: what is wrong, then what to do.
export class SetupError extends Error {
  /**
   * @param {string} problem one sentence
   * @param {readonly string[]} advice lines
   */
  constructor(problem, advice, exitCode = 1) {
    super([problem, ...advice].join('\n'));
    this.exitCode = exitCode;
  }
}
