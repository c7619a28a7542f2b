/** What is wrong with the flags of a cluster's process beside each other. */
import type { Contradiction } from './contradictions.js';
import type { FlagName, FlagValues } from './flag-table.js';

const EVERY_INTERFACE = new Set(['0.0.0.0', '::']);

/** @param secret from the environment; undefined = not there */
export function clusterFaults(values: FlagValues, secret: string | undefined): Contradiction[] {
  return [...redisFaults(values), ...linkFaults(values, secret)];
}

function redisFaults(values: FlagValues): Contradiction[] {
  const found: Contradiction[] = [];
  const fault = (between: readonly FlagName[], text: string): void => void found.push({ between, text });
  const urls = values['redis-url'];
  const mode = values['redis-mode'];
  if (urls === undefined) {
    fault(['redis-url'], '--redis-url is needed: a process of a cluster finds the others there, as in --redis-url=redis://127.0.0.1:6379');
    return found;
  }
  if (mode === 'standalone' && urls.length > 1)
    fault(['redis-url', 'redis-mode'], `--redis-mode=standalone takes one address in --redis-url, found ${urls.length}`);
  if (mode === 'sentinel' && values['redis-sentinel-master'] === undefined)
    fault(['redis-mode', 'redis-sentinel-master'], '--redis-mode=sentinel needs --redis-sentinel-master');
  if (mode !== 'sentinel' && values['redis-sentinel-master'] !== undefined)
    fault(['redis-mode', 'redis-sentinel-master'], `--redis-sentinel-master needs --redis-mode=sentinel, found ${mode}`);
  const encrypted = urls.filter((url) => url.startsWith('rediss:')).length;
  if (encrypted !== 0 && encrypted !== urls.length) fault(['redis-url'], '--redis-url: either all addresses are rediss:// or none is');
  if (encrypted === 0 && values['redis-ca-file'] !== undefined)
    fault(['redis-url', 'redis-ca-file'], '--redis-ca-file needs rediss:// addresses in --redis-url; others are not encrypted');
  if (values['redis-password-file'] !== undefined && urls.some((url) => new URL(url).password !== ''))
    fault(['redis-url', 'redis-password-file'], '--redis-password-file and a password in --redis-url: one of them');
  return found;
}

function linkFaults(values: FlagValues, secret: string | undefined): Contradiction[] {
  const found: Contradiction[] = [];
  const certificate = values['link-tls-certificate-file'];
  const key = values['link-tls-key-file'];
  if ((certificate === undefined) !== (key === undefined)) {
    const [given, wanted] = key === undefined ? ['certificate', 'key'] : ['key', 'certificate'];
    found.push({
      between: ['link-tls-certificate-file', 'link-tls-key-file'],
      text: `--link-tls-${given}-file needs --link-tls-${wanted}-file`,
    });
  }
  const host = values['link-host'];
  const advertised = values['advertise-host'] ?? host;
  if (EVERY_INTERFACE.has(advertised)) {
    found.push({
      between: ['link-host', 'advertise-host'],
      text: `--link-host=${host} needs --advertise-host: nobody can dial ${advertised}`,
    });
  }
  const open = [host, advertised].find((each) => !isLoopback(each));
  if (open !== undefined && secret === undefined && values['cluster-secret-file'] === undefined) {
    found.push({
      between: ['link-host', 'advertise-host', 'cluster-secret-file'],
      text: `--cluster-secret-file or PACELINE_CLUSTER_SECRET is needed: ${open} can be reached from other machines`,
    });
  }
  return found;
}

/** Whether only processes of this machine can be meant by `host`. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
