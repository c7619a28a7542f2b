/** Reads the command line of `paceline serve`. */
import type { ServeOptionsResult } from './serve-options.js';

/**
 * @param argv the arguments after `serve`, e.g. `process.argv.slice(2)`
 * @param env where `PACELINE_HTTP_PORT` stands for `--http-port` and so on; a flag given on the command line wins
 */
export function parseServeOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): ServeOptionsResult {
  throw new Error(`not parsed yet: ${argv.length} ${Object.keys(env).length}`);
}
