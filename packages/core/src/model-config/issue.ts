/** The words in which a configuration is judged: what is wrong (issue), what is accepted without effect (warning), and where. */

/** One thing that keeps a model from loading. */
export interface ConfigIssue {
  /** Path of the field from the root of the configuration, e.g. `input[0].dims`, `parameters["level"]`; "" = the whole. */
  readonly path: string;
  /** Names the model, what was expected and what was found. */
  readonly message: string;
  /** What to write instead, when that is known. */
  readonly hint?: string;
}

/** One field that was accepted although it has no effect. */
export interface ConfigWarning {
  readonly path: string;
  readonly message: string;
}

/** Collects issues in the order of the checks. */
export class IssueList {
  readonly issues: ConfigIssue[] = [];

  add(path: string, message: string, hint?: string): void {
    this.issues.push(hint === undefined ? { path, message } : { path, message, hint });
  }
}
