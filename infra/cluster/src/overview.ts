/** What is printed when everything runs: where to send requests, and what else there is. */
import { relative } from 'node:path';
import type { LauncherOptions, Role } from './arguments.js';
import { dialable, type ProcessPlan } from './plan.js';

export interface OverviewInput {
  readonly options: LauncherOptions['options'];
  readonly processes: readonly ProcessPlan[];
  /** Of a Redis of its own. */
  readonly redisPort: number | undefined;
  readonly stateFile: string | undefined;
  /** The folder of the example models, where they are served. */
  readonly examples: string | undefined;
}

/** @returns lines, the last one ended */
export function overview({ options, processes, redisPort, stateFile, examples }: OverviewInput): string {
  const { http, grpc, metrics } = options;
  const gateways = processes.filter(({ role }) => role === 'gateway');
  const rows = gateways.map(({ name, ports }) => [
    name,
    http.enabled ? `${http.tls ? 'https' : 'http'}://${dialable(http.address)}:${ports.http}` : '-',
    grpc.enabled ? `${dialable(grpc.address)}:${ports.grpc}` : '-',
    metrics.enabled ? `http://${dialable(metrics.address)}:${ports.metrics}/metrics` : '-',
  ]);
  const table = [['', 'HTTP', 'gRPC', 'metrics'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const count = (role: Role): string => {
    const n = processes.filter((process) => process.role === role).length;
    return `${n} ${role}${n === 1 ? '' : 's'}`;
  };
  const open = http.enabled && http.tls === undefined && options.access.keyFile === undefined;
  return [
    '',
    `The cluster is ready: ${count('gateway')}, ${count('scheduler')}, ${count('worker')}`,
    ...table.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd()),
    ...(redisPort === undefined ? [] : [`  Redis: redis://127.0.0.1:${redisPort}`]),
    ...(stateFile === undefined ? [] : [`  Process ids and ports: ${stateFile}`]),
    ...(examples === undefined || !open ? [] : ['', 'Try it:', '', `  ${exampleCommand(rows[0]?.[1] ?? '', examples)}`]),
    '',
    'Ctrl-C ends it.',
    '',
    '',
  ].join('\n');
}

/** To be run where the user is. */
function exampleCommand(url: string, examples: string): string {
  return `curl -s ${url}/v2/models/digits/infer -d @${relative(process.cwd(), `${examples}/digits/samples/seven.json`)}`;
}
