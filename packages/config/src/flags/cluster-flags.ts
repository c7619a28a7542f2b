/** Flags of the processes of a cluster: how they find each other, and what they let each other do. */
import { flag, optionalFlag } from '../flag.js';
import { host, integer, oneOf, port, redisUrls, text } from '../flag-types.js';

export const CLUSTER_GROUP = 'Processes of a cluster';

/** @see ClusterOptions */
export const clusterFlags = {
  'redis-url': optionalFlag(
    CLUSTER_GROUP,
    redisUrls,
    'none: needed',
    'Redis that joins the processes, redis:// or rediss:// (TLS); several addresses of Sentinels or cluster nodes are separated by commas',
  ),
  'redis-mode': flag(CLUSTER_GROUP, oneOf(['standalone', 'sentinel', 'cluster']), 'standalone', 'What answers at --redis-url'),
  'redis-sentinel-master': optionalFlag(
    CLUSTER_GROUP,
    text('<name>'),
    'not set',
    'Name under which the Sentinels know the master, with --redis-mode=sentinel',
  ),
  'redis-password-file': optionalFlag(
    CLUSTER_GROUP,
    text('<file>'),
    'the password in --redis-url, or none',
    'File whose first line is the password of Redis',
  ),
  'redis-ca-file': optionalFlag(
    CLUSTER_GROUP,
    text('<file>'),
    'the authorities of the system',
    'Authorities that the certificate of a rediss:// server must come from (PEM)',
  ),
  'cluster-prefix': flag(
    CLUSTER_GROUP,
    text('<name>'),
    'paceline',
    'What every key in Redis begins with; clusters that share a Redis need different ones',
  ),
  partitions: flag(
    CLUSTER_GROUP,
    integer('<count>', 1, 1024),
    '16',
    'Partitions that models are spread over, each owned by one scheduler; the same for every process of a cluster',
  ),
  'cluster-secret-file': optionalFlag(
    CLUSTER_GROUP,
    text('<file>'),
    'PACELINE_CLUSTER_SECRET, or none while every address is loopback',
    'File whose first line is the secret by which processes of the cluster know each other, at least 16 characters',
  ),
  'link-host': flag(
    CLUSTER_GROUP,
    host,
    '127.0.0.1',
    'Address on which other processes reach this one; 0.0.0.0 is every interface and needs --advertise-host',
  ),
  'link-port': flag(CLUSTER_GROUP, port, '0', 'TCP port for other processes; 0 lets the system choose'),
  'advertise-host': optionalFlag(CLUSTER_GROUP, host, '--link-host', 'Host name or address under which others dial this process'),
  'link-tls-certificate-file': optionalFlag(
    CLUSTER_GROUP,
    text('<file>'),
    'no TLS between processes',
    'Certificate that this process shows to others (PEM, chain included)',
  ),
  'link-tls-key-file': optionalFlag(CLUSTER_GROUP, text('<file>'), 'not set', 'Private key of that certificate (PEM)'),
  'link-tls-ca-file': optionalFlag(
    CLUSTER_GROUP,
    text('<file>'),
    'not set',
    'Authorities that certificates of other processes must come from (PEM)',
  ),
  'inline-bytes': flag(
    CLUSTER_GROUP,
    integer('<bytes>', 0, 262_144),
    '4096',
    'Bytes of input tensors up to which a request travels whole through Redis; above it workers fetch them from the gateway',
  ),
  'model-upload-directory': optionalFlag(
    CLUSTER_GROUP,
    text('<directory>'),
    'not set: loads that bring files are refused',
    'Where schedulers keep the files of load requests; schedulers and workers see it under the same path, as the same user',
  ),
  'heartbeat-ms': flag(
    CLUSTER_GROUP,
    integer('<ms>', 50, 60_000),
    '500',
    'Milliseconds between two signs of life; a process that misses four is taken to be gone',
  ),
  'lease-ttl-ms': flag(
    CLUSTER_GROUP,
    integer('<ms>', 300, 600_000),
    '1500',
    'Milliseconds until the partitions of a scheduler that stopped renewing pass to another',
  ),
};
