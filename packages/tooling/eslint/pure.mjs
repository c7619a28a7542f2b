// The rules of packages/core and packages/tensor: decisions and bytes only. No clock, timer, randomness, environment,
// input or output, logger or promise; whatever needs one of these takes its result as an argument. This is what lets a
// simulation run the scheduler under a virtual clock and get the same answer each time.

const WHY = 'is not allowed in a pure package: take what you need as an argument.';

const GLOBALS = [
  ...[
    'Date',
    'performance',
    'setTimeout',
    'setInterval',
    'setImmediate',
    'clearTimeout',
    'clearInterval',
    'clearImmediate',
    'queueMicrotask',
  ],
  ...['process', 'console', 'crypto', 'fetch', 'Promise', 'AbortController', 'AbortSignal', 'Worker', 'WebSocket', 'globalThis'],
];

const BUILT_IN =
  'assert,buffer,child_process,cluster,crypto,dgram,dns,events,fs,http,http2,https,net,os,path,perf_hooks,process,stream,timers,tls,url,util,v8,vm,worker_threads,zlib';

export const pureRules = {
  'no-restricted-globals': ['error', ...GLOBALS.map((name) => ({ name, message: `${name} ${WHY}` }))],
  'no-restricted-properties': ['error', { object: 'Math', property: 'random', message: `Randomness ${WHY}` }],
  'no-restricted-imports': [
    'error',
    {
      paths: BUILT_IN.split(',').map((name) => ({ name, message: `${name} ${WHY}` })),
      patterns: [{ group: ['node:*', '@nestjs/*', 'pino', 'rxjs'], message: `This ${WHY}` }],
    },
  ],
  'no-restricted-syntax': [
    'error',
    { selector: ':function[async=true]', message: `An async function ${WHY}` },
    { selector: 'AwaitExpression, ForOfStatement[await=true]', message: `await ${WHY}` },
    { selector: 'ImportExpression', message: `A dynamic import ${WHY}` },
    { selector: 'TSTypeReference > Identifier[name=/^(Promise|PromiseLike|AsyncIterable|AsyncGenerator)$/]', message: `A promise ${WHY}` },
  ],
};
