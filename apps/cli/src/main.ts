/** Entry of every `paceline` command but `serve`, which bin/paceline turns into the server without coming here. */
import { createProgram } from './program.js';

await createProgram().parseAsync();
