/** What is printed when everything runs: where to send requests, and what else there is. */
import type { LauncherOptions, Role } from './arguments.js';
import { dialable, type ProcessPlan } from './plan.js';

/** @param redisPort of a Redis of its own @returns lines, the last one ended */
export function overview(
  { http, grpc, metrics }: LauncherOptions['options'],
  processes: readonly ProcessPlan[],
  redisPort: number | undefined,
  stateFile: string | undefined,
): string {
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
  return [
    `The cluster is ready: ${count('gateway')}, ${count('scheduler')}, ${count('worker')}`,
    ...table.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd()),
    ...(redisPort === undefined ? [] : [`  redis://127.0.0.1:${redisPort}`]),
    ...(stateFile === undefined ? [] : [`  process ids and ports: ${stateFile}`]),
    '',
  ].join('\n');
}
