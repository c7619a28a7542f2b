/** Entry of the embedded server's process. */
import { serve } from './serve.js';

process.exit(await serve(process.argv.slice(2), process.env));
