/** Opens the ports that are switched on, one after the other, and says clearly which one cannot be had. */
import type { ListenOptions, ServeOptions } from '@paceline/config';
import { listenError, type MetricsServer } from '@paceline/nest-kit';
import type { GrpcServer } from '../grpc/grpc.server.js';
import type { HttpDataPlane } from '../http/index.js';

export interface FrontDoors {
  readonly http: HttpDataPlane;
  readonly grpc: GrpcServer;
  readonly metrics: MetricsServer;
}

/** `host:port` as a client writes it. */
export interface Addresses {
  readonly http: string | undefined;
  readonly grpc: string | undefined;
  readonly metrics: string | undefined;
}

export async function openFrontDoors({ http, grpc, metrics }: FrontDoors, options: ServeOptions): Promise<Addresses> {
  return {
    http: await open('HTTP', '--http-port', options.http, async ({ address, port }) => (await http.listen(address, port)).port),
    grpc: await open('gRPC', '--grpc-port', options.grpc, ({ address, port }) => grpc.listen(joined(address, port))),
    metrics: await open('metrics', '--metrics-port', options.metrics, ({ address, port }) => metrics.listen(port, address)),
  };
}

async function open(
  what: string,
  flag: string,
  door: ListenOptions,
  listen: (door: ListenOptions) => Promise<number>,
): Promise<string | undefined> {
  if (!door.enabled) return undefined;
  try {
    return joined(door.address, await listen(door));
  } catch (cause) {
    throw listenError(cause, what, door.address, door.port, flag);
  }
}

function joined(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
