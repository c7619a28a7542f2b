/**
 * Stands for each of the three programs in tests of the launcher: serves its ports, appends what happens to it to the
 * file FAKE_EVENTS, and takes FAKE_DRAIN_MS to drain. FAKE_FAILS names the kind that ends at once with exit code 3,
 * FAKE_MUTE the one that serves nothing.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const flags = new Map(process.argv.slice(2).map((word) => word.split(/=(.*)/s, 2) as [string, string]));
const role = flags.get('--fake-role') ?? '';
const { FAKE_EVENTS = '', FAKE_DRAIN_MS = '0', FAKE_FAILS = '', FAKE_MUTE = '' } = process.env;
const note = (event: string): void => appendFileSync(FAKE_EVENTS, `${role} ${process.pid} ${event}\n`);

if (role === FAKE_FAILS) {
  console.error('cannot do that');
  process.exit(3);
}
// Stays, even without a port.
setInterval(() => undefined, 60_000);
for (const name of ['--metrics-port', '--http-port', '--grpc-port']) {
  const port = flags.get(name);
  if (port !== undefined && role !== FAKE_MUTE) createServer((_, response) => response.end('ready')).listen(Number(port), '127.0.0.1');
}
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    note(signal);
    setTimeout(() => {
      note('drained');
      process.exit(0);
    }, Number(FAKE_DRAIN_MS));
  });
}
const secret = readFileSync(flags.get('--cluster-secret-file') ?? '', 'utf8').trim();
note(`started ${JSON.stringify({ args: process.argv.slice(2), secret, launcher: process.env['PACELINE_LAUNCHER_PID'] })}`);
console.log(`serving ${flags.get('--id')}`);
