// The flags that join processes, and that a server of one process takes none of them silently.
import { describe, expect, test } from '@jest/globals';
import type { ClusterServeOptions } from './cluster-options.js';
import { parseClusterOptions } from './parse-cluster-options.js';
import { parseServeOptions } from './parse-serve-options.js';

const REDIS = '--redis-url=redis://127.0.0.1:6379';

function accepted(argv: string[], env: Record<string, string> = {}): ClusterServeOptions {
  const result = parseClusterOptions('gateway', argv, env);
  if (result.kind !== 'options') throw new Error(`expected options, found ${JSON.stringify(result)}`);
  return result.options;
}

function errorsOf(argv: string[], env: Record<string, string> = {}): readonly string[] {
  const result = parseClusterOptions('gateway', argv, env);
  return result.kind === 'errors' ? result.errors : [];
}

describe('a process of a cluster', () => {
  test('needs Redis and nothing else on one machine', () => {
    const { cluster, http } = accepted([REDIS, '--http-port=0']);
    expect(http.port).toBe(0);
    expect(cluster).toEqual({
      redis: {
        mode: 'standalone',
        urls: ['redis://127.0.0.1:6379'],
        passwordFile: undefined,
        sentinelMaster: undefined,
        caFile: undefined,
      },
      prefix: 'paceline',
      partitions: 16,
      secret: undefined,
      secretFile: undefined,
      link: { host: '127.0.0.1', port: 0, advertiseHost: '127.0.0.1', tls: undefined },
      inlineBytes: 4096,
      heartbeatMs: 500,
      leaseTtlMs: 1500,
    });
    expect(errorsOf([])).toEqual([expect.stringContaining('--redis-url is needed')]);
  });

  test('keeps files of load requests only where it is told to', () => {
    expect(accepted([REDIS]).cluster.modelUploadDirectory).toBeUndefined();
    expect(accepted([REDIS, '--model-upload-directory=/uploads']).cluster.modelUploadDirectory).toBe('/uploads');
  });

  test('takes the secret from the environment, and other flags too', () => {
    const env = { PACELINE_CLUSTER_SECRET: 'sixteen letters!', PACELINE_REDIS_URL: 'rediss://r:1', PACELINE_PARTITIONS: '4' };
    const { cluster } = accepted(['--link-host=0.0.0.0', '--advertise-host=10.0.0.7'], env);
    expect([cluster.secret, cluster.redis.urls, cluster.partitions]).toEqual(['sixteen letters!', ['rediss://r:1'], 4]);
    expect(cluster.link.advertiseHost).toBe('10.0.0.7');
  });

  test('goes on without a model that fails, and says so to whoever asks for an end', () => {
    const warnings = (argv: string[], env = {}): unknown => {
      const result = parseClusterOptions('scheduler', [REDIS, ...argv], env);
      return result.kind === 'options' && result.warnings;
    };
    expect([warnings([]), warnings(['--exit-on-error=false'])]).toEqual([[], []]);
    expect(warnings(['--exit-on-error'])).toEqual([expect.stringMatching(/^--exit-on-error has no effect in a cluster: .* logs why/)]);
    expect(warnings([], { PACELINE_EXIT_ON_ERROR: 'true' })).toEqual([expect.stringContaining('PACELINE_EXIT_ON_ERROR has no effect')]);
  });

  test('Sentinels and cluster nodes are listed with commas', () => {
    const { redis } = accepted(['--redis-url=redis://a:1,redis://b:2', '--redis-mode=sentinel', '--redis-sentinel-master=m']).cluster;
    expect([redis.urls, redis.sentinelMaster]).toEqual([['redis://a:1', 'redis://b:2'], 'm']);
  });

  test.each([
    [
      ['--redis-url=http://a'],
      "--redis-url: expected redis://host:port or rediss://host:port, more of them after commas, found 'http://a'",
    ],
    [['--redis-url=redis://a,redis://b'], '--redis-mode=standalone takes one address'],
    [[REDIS, '--redis-mode=sentinel'], 'needs --redis-sentinel-master'],
    [[REDIS, '--redis-sentinel-master=m'], 'needs --redis-mode=sentinel'],
    [[REDIS, '--redis-ca-file=ca.pem'], 'needs rediss:// addresses'],
    [['--redis-url=redis://a,rediss://b', '--redis-mode=cluster'], 'either all addresses are rediss://'],
    [['--redis-url=redis://:p@a', '--redis-password-file=f'], 'one of them'],
    [[REDIS, '--link-tls-key-file=k'], '--link-tls-key-file needs --link-tls-certificate-file'],
    [[REDIS, '--link-host=0.0.0.0', '--cluster-secret-file=s'], 'nobody can dial 0.0.0.0'],
    [[REDIS, '--link-host=10.0.0.1'], '--cluster-secret-file or PACELINE_CLUSTER_SECRET is needed: 10.0.0.1'],
    [[REDIS, '--link-host=[::1]'], 'without brackets'],
    [[REDIS, '--partitions=0'], 'between 1 and 1024'],
  ])('%j', (argv, expected) => {
    const errors = errorsOf(argv);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain(expected);
  });

  test('no message shows a password', () => {
    expect(errorsOf(['--redis-url=redis://user:hush@a:1,ftp://b'])[0]).not.toContain('hush');
  });
});

describe('a server of one process', () => {
  test.each(['--redis-url=redis://a', '--cluster-secret-file=f', '--link-port=1', '--partitions=8'])('refuses %s by name', (word) => {
    const result = parseServeOptions([word], {});
    expect(result).toEqual({
      kind: 'errors',
      errors: [expect.stringContaining(`${word.split('=')[0]} is for the processes of a cluster`)],
    });
    expect(result.kind === 'errors' && result.errors[0]).toContain('npm run cluster');
  });

  test('and the environment variable by its own name', () => {
    const result = parseServeOptions([], { PACELINE_REDIS_URL: 'redis://a' });
    expect(result.kind === 'errors' && result.errors).toEqual([expect.stringContaining('PACELINE_REDIS_URL is for the processes')]);
  });
});
