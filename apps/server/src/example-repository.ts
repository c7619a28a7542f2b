/** The model repository that is served when the command line names none. */
import { fileURLToPath } from 'node:url';
import { relative } from 'node:path';

export const EXAMPLE_REPOSITORY = fileURLToPath(new URL('../example-models', import.meta.url));

/** A command for another terminal that asks the digit classifier what it sees, to be run where the user is. */
export function exampleCommand(httpAddress: string): string {
  const body = relative(process.cwd(), `${EXAMPLE_REPOSITORY}/digits/samples/seven.json`);
  return `curl -s ${httpAddress}/v2/models/digits/infer -d @${body}`;
}
