// Which part may import which: the arrows of the architecture, as rules. A dependency that no rule allows is an error, so a
// new package has to say here where it stands. `test/architecture.test.ts` proves that each rule can fail.

/** What each package may import of the others, beside itself. */
const ALLOWED = {
  clock: [],
  tensor: [],
  protocol: ['tensor'],
  // The decisions: pure, so not even the clock.
  core: ['tensor', 'protocol'],
  // Adapters: they never see the core, nor the core them.
  // What those between processes stand on: connections, and Redis.
  link: ['clock', 'tensor', 'protocol'],
  redis: ['clock', 'protocol'],
  streams: ['clock', 'tensor', 'protocol', 'link', 'redis'],
  'worker-rpc': ['clock', 'tensor', 'protocol', 'link'],
  'cluster-state': ['clock', 'protocol', 'redis'],
  'model-repository': ['clock', 'tensor', 'protocol'],
  config: ['protocol'],
  telemetry: ['clock', 'protocol'],
  // What the three apps that are processes of a cluster have in common of NestJS.
  'nest-kit': ['clock', 'protocol', 'config', 'telemetry', 'redis', 'cluster-state'],
  testkit: ['clock', 'tensor', 'protocol'],
};

/** Only the embedded server joins apps; the command line knows the flags and looks into Redis, the end-to-end tests only what clients know. */
const APPS_ALLOWED = {
  server: { apps: ['gateway', 'scheduler', 'worker'] },
  cli: { packages: ['clock', 'cluster-state', 'config', 'protocol', 'redis', 'streams'] },
  e2e: { packages: ['testkit', 'tensor', 'protocol'] },
};

const TEST = '[.]test[.]ts$|/testing/|^packages/(testkit|tooling)/|^apps/e2e/|^infra/bench/|[.]config[.]mjs$';
const names = (list) => `(${['-none-', ...list].join('|')})`;

const packageRules = Object.entries(ALLOWED).map(([name, allowed]) => ({
  name: `packages-${name}`,
  comment: `packages/${name} imports ${allowed.join(', ') || 'nothing'} of this repository (and, in tests, testkit and tooling).`,
  severity: 'error',
  from: { path: `^packages/${name}/` },
  to: { path: '^(packages|apps|infra)/', pathNot: [`^packages/${names([name, ...allowed])}/`, '^packages/(testkit|tooling)/'] },
}));

const appRules = Object.entries(APPS_ALLOWED).flatMap(([name, { packages }]) =>
  packages === undefined
    ? []
    : [
        {
          name: `apps-${name}`,
          comment: `apps/${name} imports ${packages.join(', ')} of this repository.`,
          severity: 'error',
          from: { path: `^apps/${name}/` },
          to: { path: '^packages/', pathNot: `^packages/${names([...packages, 'testkit', 'tooling'])}/` },
        },
      ],
);

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...packageRules,
    ...appRules,
    {
      name: 'no-new-package-without-a-place',
      comment: 'A package that is not in the table of dependency-cruiser/config.mjs has no place in the architecture yet.',
      severity: 'error',
      from: { path: '^packages/[^/]+/', pathNot: `^packages/${names([...Object.keys(ALLOWED), 'tooling'])}/` },
      to: {},
    },
    {
      name: 'apps-never-import-each-other',
      comment: 'apps/server is the only joiner.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: '^apps/server/' },
      to: { path: '^apps/([^/]+)/', pathNot: '^apps/$1/' },
    },
    {
      name: 'server-joins-its-parts-only',
      severity: 'error',
      from: { path: '^apps/server/' },
      to: { path: '^apps/', pathNot: `^apps/${names(['server', ...APPS_ALLOWED.server.apps])}/` },
    },
    {
      name: 'nest-only-in-apps',
      comment: 'Packages know no framework, nest-kit excepted.',
      severity: 'error',
      from: { path: '^(packages|infra)/', pathNot: '^packages/nest-kit/' },
      to: { path: 'node_modules/@nestjs/' },
    },
    {
      name: 'pure-packages-do-no-io',
      comment: 'core and tensor have no built-in modules of Node.',
      severity: 'error',
      from: { path: '^packages/(core|tensor)/src/', pathNot: TEST },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'pure-packages-have-no-libraries',
      comment: 'core and tensor import no library but the protobuf runtime whose messages they read.',
      severity: 'error',
      from: { path: '^packages/(core|tensor)/src/', pathNot: TEST },
      to: { path: 'node_modules/', pathNot: 'node_modules/(@bufbuild/protobuf|@paceline)/' },
    },
    {
      name: 'test-tools-only-in-tests',
      severity: 'error',
      from: { path: '^(apps|packages|infra)/', pathNot: TEST },
      to: { path: '^packages/testkit/|^packages/[^/]+/(src|dist)/testing/|node_modules/(@jest|fast-check)/' },
    },
    {
      name: 'no-cycles',
      comment: 'Types may refer to each other; code may not.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'declared-dependencies-only',
      comment: 'What product code imports stands in the dependencies of its package.json.',
      severity: 'error',
      from: { path: '^(apps|packages|infra)/[^/]+/(src|bin|setup)/', pathNot: TEST },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg'], pathNot: '^(apps|packages)/' },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    // A workspace package is judged as what it is, not as something below node_modules.
    doNotFollow: { path: ['node_modules', '/dist/'] },
    exclude: { path: ['/dist/.*[.]map$', '/coverage/', '/node_modules/.*/node_modules/'] },
    tsPreCompilationDeps: true,
    combinedDependencies: false,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'default', 'node'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.d.ts'],
    },
  },
};
