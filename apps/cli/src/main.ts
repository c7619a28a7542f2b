/** Entry of every `paceline` command but `serve` and `check`, which bin/paceline turns into apps/server without coming here. */
import { createProgram } from './program.js';

await createProgram().parseAsync();
