/**
 * The connections between the processes of a cluster: encrypted on both sides where asked for, closed to whoever has not
 * the cluster's secret or certificate, and nothing listens that is not meant to. A stranger harms nobody.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  identityModel,
  startRedis,
  temporaryModelRepository,
  TestAuthority,
  type RedisServer,
  type TemporaryRepository,
} from '@paceline/testkit';
import { startMember, type ClusterMember } from './support/cluster-member.js';
import { startCluster, type ClusterProcess } from './support/cluster-process.js';
import { listeningPorts } from './support/listening.js';
import { until } from './support/until.js';
import { startVerifiedLoad } from './support/verified-load.js';

const CLI = fileURLToPath(new URL('../../cli/dist/main.js', import.meta.url));
const LIMIT_MS = 120_000;
const CONFIG = `max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] }
instance_group { count: 1 kind: KIND_CPU }`;

let repository: TemporaryRepository;
let authority: TestAuthority;
let redis: RedisServer;
let cluster: ClusterProcess;
let own: string[];
let secretFile: string;
let wrongSecretFile: string;
const strangers = new Set<ClusterMember>();

beforeAll(async () => {
  const versions = { 1: identityModel({ datatype: 'INT32', dims: [-1] }) };
  repository = temporaryModelRepository(['a', 'later'].map((name) => ({ name, config: CONFIG, versions })));
  authority = await TestAuthority.create();
  redis = await startRedis();
  secretFile = authority.write('secret', 'the secret of this cluster\n');
  wrongSecretFile = authority.write('wrong-secret', 'the secret of another one\n');
  own = [
    `--model-repository=${repository.root}`,
    '--model-control-mode=explicit',
    '--load-model=a',
    `--redis-url=${redis.url}`,
    '--partitions=8',
    ...(await certificate('member', true)),
  ];
  cluster = await startCluster([...own, `--cluster-secret-file=${secretFile}`, '--gateways=2', '--schedulers=2', '--workers=2']);
}, LIMIT_MS);
afterEach(async () => {
  for (const { child, exited } of strangers) {
    child.kill('SIGKILL');
    await exited;
  }
  strangers.clear();
});
afterAll(async () => {
  await cluster.stop('SIGKILL');
  await redis.stop();
  repository.remove();
  authority.remove();
});

async function certificate(name: string, signed: boolean): Promise<string[]> {
  const { certFile, keyFile } = await authority.issue(name, signed);
  const ca = authority.certificate.certFile;
  return [`--link-tls-certificate-file=${certFile}`, `--link-tls-key-file=${keyFile}`, `--link-tls-ca-file=${ca}`];
}

function stranger(...given: Parameters<typeof startMember>): ClusterMember {
  const member = startMember(...given);
  strangers.add(member);
  return member;
}

/** The cluster answers, also requests that workers fetch over the links, and still loads and unloads models. */
async function expectUnharmed(): Promise<void> {
  const loads = [4, 5000].map((numbers) => startVerifiedLoad(cluster.http, { model: 'a', clients: 2, numbers }));
  await until('answers', 30_000, () => loads.every(({ answered }) => answered >= 20));
  for (const load of loads) await load.stop();
  expect(loads.flatMap(({ failures }) => failures)).toEqual([]);
  for (const verb of ['load', 'unload']) {
    const answer = await fetch(`http://${cluster.http[1]}/v2/repository/models/later/${verb}`, { method: 'POST', body: '{}' });
    expect([verb, answer.status, await answer.text()]).toEqual([verb, 200, expect.anything()]);
  }
}

const SECRET_FLAG = '--cluster-secret-file or PACELINE_CLUSTER_SECRET';

describe('mutual TLS between the processes', () => {
  it('carries everything', expectUnharmed, LIMIT_MS);

  it('listens on nothing but the documented ports, all of them on the loopback interface', () => {
    const { gateways, schedulers, workers } = cluster.state;
    for (const { pid, http, grpc, metrics } of gateways) {
      const ports = listeningPorts(pid);
      expect(ports.every(({ loopback }) => loopback)).toBe(true);
      // The fourth is the link port.
      expect(ports).toHaveLength(4);
      expect(ports.map(({ port }) => port)).toEqual(expect.arrayContaining([http, grpc, metrics]));
    }
    for (const { pid, metrics } of schedulers) expect(listeningPorts(pid)).toEqual([{ port: metrics, loopback: true }]);
    for (const { pid, metrics } of workers) {
      const ports = listeningPorts(pid);
      expect(ports.every(({ loopback }) => loopback)).toBe(true);
      expect(ports).toHaveLength(2);
      expect(ports.map(({ port }) => port)).toContain(metrics);
    }
  });
});

describe('a process that does not belong there', () => {
  it.each([
    ['gateway', 'another secret', [`another cluster secret is set here`]],
    ['scheduler', 'another secret', [`another cluster secret is set here`]],
    ['worker', 'another secret', [`another cluster secret is set here`]],
    ['scheduler', 'no secret', ['no cluster secret is set here']],
    ['scheduler', 'other partitions', ['--partitions=4', 'has 8']],
  ] as const)(
    'a %s with %s does not start, and says which flag to look at',
    async (app, what, words) => {
      const flags = {
        'another secret': [`--cluster-secret-file=${wrongSecretFile}`],
        'no secret': [],
        'other partitions': [`--cluster-secret-file=${secretFile}`, '--partitions=4'],
      }[what];
      const { exited, log } = stranger(app, [...own, ...flags]);
      expect(await exited).toBe(1);
      const said = log.join('\n');
      expect(said).toContain(what === 'other partitions' ? '--partitions' : SECRET_FLAG);
      for (const word of words) expect(said).toContain(word);
      for (const text of ['the secret of this cluster', 'the secret of another one']) expect(said).not.toContain(text);
    },
    LIMIT_MS,
  );

  it.each(['gateway', 'scheduler', 'worker'] as const)(
    'a %s with a certificate of nobody harms nobody, and the reason is in a log',
    async (app) => {
      const flags = [...own, ...(await certificate(`stranger-${app}`, false)), `--cluster-secret-file=${secretFile}`];
      const before = cluster.log.length;
      const { log } = stranger(app, flags);
      await until('it runs', 30_000, () => log.some((line) => line.includes(`${app} runs`)));
      await until(`somebody names the certificate:\n${log.join('\n')}`, 20_000, () =>
        [...log, ...cluster.log.slice(before)].some((line) => /certificate/i.test(line)),
      );
      await expectUnharmed();
      const id = (JSON.parse(log.find((line) => line.includes(`${app} runs`)) ?? '') as { id: string }).id;
      const { members, partitions } = JSON.parse(
        execFileSync(process.execPath, [CLI, 'streams', '--json', `--redis-url=${redis.url}`], { encoding: 'utf8' }),
      ) as { members: { id: string; draining: boolean }[]; partitions: { owner: string }[] };
      // A scheduler that reaches no gateway is not counted among those who share, and holds nothing.
      expect(members.find((member) => member.id === id)?.draining).toBe(app === 'scheduler');
      expect(partitions.map(({ owner }) => owner)).not.toContain(id);
    },
    LIMIT_MS,
  );

  it(
    'without a secret only addresses of this machine are served',
    async () => {
      const { exited, log } = stranger('worker', [...own, '--link-host=0.0.0.0', '--advertise-host=worker-1']);
      expect(await exited).toBe(1);
      expect(log.join('\n')).toContain(`${SECRET_FLAG} is needed`);
    },
    LIMIT_MS,
  );
});
