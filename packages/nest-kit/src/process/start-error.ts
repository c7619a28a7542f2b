/** Says in words why a process could not start, first of all that a port could not be had, and what to do about it. */

const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: 'it is already in use by another process: stop that one, or choose another port with',
  EACCES: 'this user may not use it (ports below 1024 need more rights): choose another port with',
  EADDRNOTAVAIL: 'this machine has no such address: check the address, and the port in',
};

/** An error that is printed as its message alone. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** @param flag the flag that chooses the port, e.g. `--http-port` */
export function listenError(cause: unknown, what: string, address: string, port: number, flag: string): StartError {
  const text = cause instanceof Error ? cause.message : String(cause);
  const code = (cause as { code?: string } | undefined)?.code ?? '';
  const advice = ADVICE[code] ?? ADVICE[/\bE[A-Z]{4,}/.exec(text)?.[0] ?? ''];
  const reason = advice === undefined ? text : `${advice} ${flag}`;
  return new StartError(`cannot listen for ${what} on ${address}:${port}: ${reason}`, { cause });
}
