/** Reads the command line of a process of a cluster. What comes out is frozen. */
import { clusterFaults } from './cluster-faults.js';
import type { ClusterOptions, ClusterServeOptions } from './cluster-options.js';
import { contradictions } from './contradictions.js';
import type { FlagValues } from './flag-table.js';
import { helpText } from './help-text.js';
import { deepFreeze, parseFlags, type ParsedFlags } from './parse-flags.js';
import type { ServeOptionsResult } from './serve-options.js';
import { toServeOptions } from './to-serve-options.js';

/** The secret itself, for those who have no file for it. There is no flag: others see a command line. */
const SECRET = 'PACELINE_CLUSTER_SECRET';

/**
 * @param program what `--help` calls the process: gateway, scheduler or worker
 * @param argv every flag of `paceline serve` is known: what a process has no use for, it ignores, so that all processes of
 * a cluster can be given the same flags
 * @param env as in {@link parseServeOptions}, and `PACELINE_CLUSTER_SECRET`
 */
export function parseClusterOptions(
  program: string,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ServeOptionsResult<ClusterServeOptions> {
  const parsed = parseFlags(argv, env);
  if (parsed.help) return { kind: 'help', text: helpText([`Usage: ${program} --redis-url=<url> [flags]`]) };
  const { values } = parsed;
  const secret = env[SECRET] === '' ? undefined : env[SECRET];
  const errors = parsed.errorsWith([...contradictions(values), ...clusterFaults(values, secret)]);
  if (errors.length > 0) return { kind: 'errors', errors };
  const options = { ...toServeOptions(values), cluster: toClusterOptions(values, secret) };
  return { kind: 'options', options: deepFreeze(options), warnings: [...parsed.warnings, ...withoutEffectHere(parsed)] };
}

/** A process that ended for a model would be started again, to fail once more, and take others with it. */
function withoutEffectHere({ values, given }: ParsedFlags): string[] {
  const source = given.get('exit-on-error')?.at(-1)?.source;
  if (source === undefined || !values['exit-on-error']) return [];
  return [
    `${source} has no effect in a cluster: when a model fails to load, the scheduler that places models logs why, the others are served, and with --strict-readiness gateways are not ready`,
  ];
}

function toClusterOptions(values: FlagValues, secret: string | undefined): ClusterOptions {
  const tls = {
    certificateFile: values['link-tls-certificate-file'],
    keyFile: values['link-tls-key-file'],
    caFile: values['link-tls-ca-file'],
  };
  return {
    redis: {
      mode: values['redis-mode'],
      urls: values['redis-url'] ?? [],
      passwordFile: values['redis-password-file'],
      sentinelMaster: values['redis-sentinel-master'],
      caFile: values['redis-ca-file'],
    },
    prefix: values['cluster-prefix'],
    partitions: values.partitions,
    secret,
    secretFile: values['cluster-secret-file'],
    link: {
      host: values['link-host'],
      port: values['link-port'],
      advertiseHost: values['advertise-host'] ?? values['link-host'],
      tls: Object.values(tls).every((file) => file === undefined) ? undefined : tls,
    },
    inlineBytes: values['inline-bytes'],
    modelUploadDirectory: values['model-upload-directory'],
    heartbeatMs: values['heartbeat-ms'],
    leaseTtlMs: values['lease-ttl-ms'],
  };
}
