/** The model repository that is served when the command line names none. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ModelCatalog } from '@paceline/protocol';

export const EXAMPLE_REPOSITORY = fileURLToPath(new URL('../example-models', import.meta.url));

const EXAMPLE_MODEL = 'digits';

/**
 * A command for another terminal that asks the digit classifier what it sees, to be run where the user is; undefined
 * where that model is not ready or is not ours.
 */
export function exampleCommand(httpAddress: string, models: ModelCatalog): string | undefined {
  const ready = models.served().find(({ name }) => name === EXAMPLE_MODEL);
  if (ready?.inputs.length !== 1 || ready.inputs[0]!.name !== 'pixels') return undefined;
  const body = relative(process.cwd(), `${EXAMPLE_REPOSITORY}/${EXAMPLE_MODEL}/samples/seven.json`);
  // An address that means "every interface" is none that a client can name.
  const address = httpAddress.replace(/^(0\.0\.0\.0|\[::\])/, 'localhost');
  return `curl -s ${address}/v2/models/${EXAMPLE_MODEL}/infer -d @${body}`;
}
