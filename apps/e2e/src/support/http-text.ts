/** Whole HTTP/1.1 requests as bytes: nothing here corrects what it is told to write. */
export type HeaderLines = readonly (readonly [name: string, value: string])[];

export function inferPath(model: string, version?: string): string {
  return `/v2/models/${model}${version === undefined ? '' : `/versions/${version}`}/infer`;
}

/** A head with exactly these lines. */
export function head(requestLine: string, headers: HeaderLines): Buffer {
  return Buffer.from(`${requestLine}\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`, 'latin1');
}

/** A POST with a right Content-Length. */
export function post(path: string, body: Buffer, headers: HeaderLines = []): Buffer {
  const lines: HeaderLines = [['Host', 'localhost'], ...headers, ['Content-Length', String(body.length)]];
  return Buffer.concat([head(`POST ${path} HTTP/1.1`, lines), body]);
}
