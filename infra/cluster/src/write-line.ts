/** Prints whole lines. A reader that has gone is no reason to end: the cluster serves on. */
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

export function writeLine(stream: 'stdout' | 'stderr', line: string): void {
  process[stream].write(`${line}\n`);
}
