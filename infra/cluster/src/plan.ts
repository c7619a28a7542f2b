/**
 * What is to run: every process with its command line and the ports that it keeps. Made once, before anything starts, so
 * that a process that is started again is the same to everybody else.
 */
import type { LauncherOptions, Role } from './arguments.js';
import type { FreePorts } from './free-ports.js';
import type { Probe } from './probe.js';

/** Where the programs are. */
export interface Programs {
  /** A path, and first arguments where there are any. */
  readonly mains: Readonly<Record<Role, readonly string[]>>;
  readonly nodeFlags: readonly string[];
  /** The repository that is served where the command line names none. */
  readonly exampleModels: string;
}

export interface ProcessPlan {
  /** `gateway-1` */
  readonly name: string;
  readonly role: Role;
  readonly args: readonly string[];
  readonly ports: { readonly http: number; readonly grpc: number; readonly metrics: number };
  /** How to find out whether it serves; undefined = it has no door to knock at. */
  readonly probe: Probe | undefined;
}

const ROLES: readonly Role[] = ['gateway', 'scheduler', 'worker'];

/** @param extra flags for all that are not in the command line: where Redis is, the secret */
export async function planProcesses(
  { counts, flags, options }: LauncherOptions,
  extra: readonly string[],
  programs: Programs,
  free: FreePorts,
): Promise<readonly ProcessPlan[]> {
  const wanted = { http: options.http.port, grpc: options.grpc.port, metrics: options.metrics.port };
  for (const port of Object.values(wanted)) free.reserve(port);
  const plans: ProcessPlan[] = [];
  for (const role of ROLES) {
    for (let n = 1; n <= counts[role]; n++) {
      const first = role === 'gateway' && n === 1;
      const port = async (asked: number): Promise<number> => (first && asked !== 0 ? asked : free.take());
      const metrics = await port(wanted.metrics);
      const doors = role === 'gateway' ? { http: await port(wanted.http), grpc: await port(wanted.grpc) } : { http: 0, grpc: 0 };
      const ports = { ...doors, metrics };
      const own = [`--metrics-port=${metrics}`, `--link-port=${await free.take()}`];
      if (role === 'gateway') own.push(`--http-port=${ports.http}`, `--grpc-port=${ports.grpc}`);
      plans.push({
        name: `${role}-${n}`,
        role,
        args: [...programs.nodeFlags, ...programs.mains[role], ...flags, ...extra, ...own],
        ports,
        probe: role === 'gateway' ? gatewayProbe(options, ports) : metricsProbe(options, metrics),
      });
    }
  }
  return plans;
}

type Options = LauncherOptions['options'];

function gatewayProbe({ http, grpc, metrics }: Options, ports: ProcessPlan['ports']): Probe | undefined {
  if (http.enabled && http.tls === undefined)
    return { kind: 'http', host: dialable(http.address), port: ports.http, path: '/v2/health/ready' };
  // Behind TLS, or without HTTP, an open port has to do.
  if (http.enabled) return { kind: 'tcp', host: dialable(http.address), port: ports.http };
  if (grpc.enabled) return { kind: 'tcp', host: dialable(grpc.address), port: ports.grpc };
  return metrics.enabled ? { kind: 'tcp', host: dialable(metrics.address), port: ports.metrics } : undefined;
}

function metricsProbe({ metrics }: Options, port: number): Probe | undefined {
  return metrics.enabled ? { kind: 'http', host: dialable(metrics.address), port, path: '/ready' } : undefined;
}

/** Where to reach somebody who listens there. */
export function dialable(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  return address === '::' ? '::1' : address;
}
