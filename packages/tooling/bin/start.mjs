// `npm start -- <flags>`: sets up what is missing, then runs the embedded server, which drains at a signal.
import { launch } from '../setup/launch.mjs';
import { SERVER_MAIN } from '../setup/set-up.mjs';

await launch(SERVER_MAIN);
