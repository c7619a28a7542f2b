import { describe, expect, test } from '@jest/globals';
import { FLAG_NAMES, FLAGS } from './flag-table.js';
import type { ServeOptions } from './serve-options.js';
import { parseServeOptions } from './parse-serve-options.js';

function accepted(argv: string[], env: Record<string, string> = {}): { options: ServeOptions; warnings: readonly string[] } {
  const result = parseServeOptions(argv, env);
  if (result.kind !== 'options') throw new Error(`expected options, found ${JSON.stringify(result)}`);
  return result;
}

function errorsOf(argv: string[], env: Record<string, string> = {}): readonly string[] {
  const result = parseServeOptions(argv, env);
  return result.kind === 'errors' ? result.errors : [];
}

describe('values', () => {
  test('an empty command line serves the example models on loopback, on Triton’s ports', () => {
    const { options, warnings } = accepted([]);
    expect(warnings).toEqual([]);
    expect(options.repository.directories).toEqual([]);
    expect(options.repository.controlMode).toBe('none');
    expect([options.http, options.grpc, options.metrics].map(({ enabled, address, port }) => [enabled, address, port])).toEqual([
      [true, '127.0.0.1', 8000],
      [true, '127.0.0.1', 8001],
      [true, '127.0.0.1', 8002],
    ]);
    expect(options.http.maxInputBytes).toBe(64 * 1024 * 1024);
  });

  test('a value may follow after a space or an equals sign; repeatable flags keep their order', () => {
    const { options } = accepted(['--model-repository', '/a', '--model-store=/b', '--http-port', '0', '--grpc-port=9001']);
    expect(options.repository.directories).toEqual(['/a', '/b']);
    expect(options.http.port).toBe(0);
    expect(options.grpc.port).toBe(9001);
  });

  test.each([
    [['--strict-readiness=false'], false],
    [['--strict-readiness', 'false'], false],
    [['--strict-readiness=OFF'], false],
    [['--strict-readiness', '--log-verbose=1'], true],
    [['--strict-readiness=false', '--strict-readiness'], true],
  ])('switch %j', (argv, expected) => {
    expect(accepted(argv).options.repository.strictReadiness).toBe(expected);
  });

  test('a value with an equals sign is kept whole', () => {
    expect(accepted(['--log-file=a=b']).options.log.file).toBe('a=b');
  });

  test('metrics listen where HTTP does unless told otherwise', () => {
    expect(accepted(['--http-address=0.0.0.0']).options.metrics.address).toBe('0.0.0.0');
    expect(accepted(['--http-address=0.0.0.0', '--metrics-address=::1']).options.metrics.address).toBe('::1');
  });

  test('latency metrics are those of Triton unless told otherwise; the last setting of a key counts', () => {
    const latencies = (argv: string[]): unknown => {
      const { counterLatencies, summaryQuantiles } = accepted(argv).options.metrics;
      return [counterLatencies, summaryQuantiles];
    };
    expect(latencies([])).toEqual([true, []]);
    expect(latencies(['--metrics-config=summary_quantiles=0.5:0.05'])).toEqual([true, []]);
    expect(latencies(['--metrics-config', 'summary_latencies=true'])).toEqual([true, [0.5, 0.9, 0.95, 0.99, 0.999]]);
    expect(
      latencies([
        '--metrics-config=summary_latencies=true',
        '--metrics-config=summary_quantiles=0.5:0.05',
        '--metrics-config=summary_quantiles=0.75:0.01,.9:0.001',
        '--metrics-config=counter_latencies=true',
        '--metrics-config=counter_latencies=false',
      ]),
    ).toEqual([false, [0.75, 0.9]]);
  });

  test('a histogram that no model can fill is warned of', () => {
    expect(accepted(['--metrics-config=histogram_latencies=true']).warnings).toEqual([expect.stringContaining('decoupled models')]);
    expect(accepted(['--metrics-config=histogram_latencies=false']).warnings).toEqual([]);
  });

  test('there is no access log unless it is asked for', () => {
    expect(accepted([]).options.log.access).toBeUndefined();
    expect(accepted(['--access-log', '-']).options.log.access).toBe('-');
    expect(accepted(['--access-log=/var/log/a.log']).options.log.access).toBe('/var/log/a.log');
  });

  test.each([
    ['latencies=true', 'expected counter_latencies'],
    ['counter_latencies', 'expected counter_latencies'],
    ['summary_latencies=yes', 'expected summary_latencies=true or summary_latencies=false'],
    ['summary_quantiles=50:0.1', 'with quantiles between 0 and 1'],
    ['summary_quantiles=1.0:0.1', 'with quantiles between 0 and 1'],
    ['summary_quantiles=0.5', 'with quantiles between 0 and 1'],
    ['summary_quantiles=0.5:0.05,', 'with quantiles between 0 and 1'],
    ['summary_quantiles=0.5:0.0001', 'an error of at least 0.001'],
  ])('the metrics setting %s is refused', (setting, text) => {
    expect(errorsOf([`--metrics-config=${setting}`])).toEqual([expect.stringContaining(text)]);
  });

  test('backend settings are grouped by backend and the last of a key counts', () => {
    const { options } = accepted([
      '--backend-config=onnxruntime,default-max-batch-size=4',
      '--backend-config=onnxruntime,default-max-batch-size=8',
      '--backend-config=python,a=b=c',
    ]);
    expect(options.backendConfig.get('onnxruntime')).toEqual(new Map([['default-max-batch-size', '8']]));
    expect(options.backendConfig.get('python')?.get('a')).toBe('b=c');
  });

  test('either spelling turns auto-completion off', () => {
    expect(accepted(['--disable-auto-complete-config']).options.repository.autoCompleteConfig).toBe(false);
    expect(accepted(['--strict-model-config=true']).options.repository.autoCompleteConfig).toBe(false);
    expect(accepted([]).options.repository.autoCompleteConfig).toBe(true);
  });

  test('explicit mode takes names or a single star', () => {
    const explicit = '--model-control-mode=explicit';
    expect(accepted([explicit, '--load-model=a', '--load-model=b']).options.repository.loadModels).toEqual(['a', 'b']);
    expect(accepted([explicit, '--load-model=*']).options.repository.loadModels).toBe('all');
    expect(accepted([explicit]).options.repository.loadModels).toEqual([]);
  });

  test('options cannot be changed', () => {
    const { options } = accepted([]);
    expect(Object.isFrozen(options) && Object.isFrozen(options.http) && Object.isFrozen(options.repository.directories)).toBe(true);
  });
});

describe('environment', () => {
  test('stands for a flag that is not given, and is named in messages', () => {
    expect(accepted([], { PACELINE_GRPC_PORT: '9' }).options.grpc.port).toBe(9);
    expect(accepted(['--grpc-port=10'], { PACELINE_GRPC_PORT: '9' }).options.grpc.port).toBe(10);
    expect(errorsOf([], { PACELINE_GRPC_PORT: 'x' })).toEqual([
      "PACELINE_GRPC_PORT: expected a whole number between 0 and 65535, found 'x'",
    ]);
  });

  test('an empty variable is the same as none', () => {
    expect(accepted([], { PACELINE_GRPC_PORT: '' }).options.grpc.port).toBe(8001);
  });
});

describe('violations', () => {
  test('all are reported at once, with what was expected and found', () => {
    expect(errorsOf(['--htp-port=3', 'stray', '--http-port=99999', '--exit-on-error=perhaps', '--grpc-use-ssl', '--log-file'])).toEqual([
      'unknown flag --htp-port; did you mean --http-port?',
      "unexpected argument 'stray'; flags start with two dashes and --help lists them",
      '--log-file needs a value: --log-file=<file>',
      "--exit-on-error: expected true or false, found 'perhaps'",
      "--http-port: expected a whole number between 0 and 65535, found '99999'",
      '--grpc-use-ssl needs --grpc-server-cert',
      '--grpc-use-ssl needs --grpc-server-key',
    ]);
  });

  test.each([
    ['--model-control-mode=sometimes', "expected one of none, poll, explicit, found 'sometimes'"],
    ['--load-model=a', 'needs --model-control-mode=explicit'],
    ['--grpc-port=8000', '--http-port and --grpc-port are both 8000 on 127.0.0.1'],
    ['--http-port=1e3', "found '1e3'"],
    ['--http-port=', "found ''"],
    ['--backend-config=onnxruntime', 'expected <backend>,<key>=<value>'],
    ['--backend-config=onnxruntime,default-max-batch-size=many', "expected a whole number from 0 to 999999, found 'many'"],
    ['--http-restricted-api=model-config', 'expected <apis>:<key>=<value>'],
    ['--http-restricted-api=modelconfig:k=v', "unknown restricted api 'modelconfig'"],
    ['--grpc-restricted-protocol=metrics:k=v', "unknown restricted api 'metrics'"],
    ['--http-restricted-api=health:content-length=v', 'expected the name of a header of its own'],
    ['--http-restricted-api=health,health:k=v', "restricted api 'health' can not be specified in multiple config groups"],
    ['--http-cors-origin=https://app.example.com/', 'expected an origin as browsers send it'],
    ['--http-cors-origin=null', 'expected an origin as browsers send it'],
    ['--http-tls-cert=a.pem', '--http-tls-cert needs --http-tls-key'],
    ['--http-tls-key=a.pem', '--http-tls-key needs --http-tls-cert'],
    ['--grpc-server-cert=a.pem', '--grpc-server-cert needs --grpc-use-ssl; without it the port is not encrypted'],
    ['--grpc-root-cert=a.pem', '--grpc-root-cert needs --grpc-use-ssl-mutual'],
    ['--zzzzzzzzzzzz', '--help lists all flags'],
    ['--constructor=1', 'unknown flag --constructor'],
  ])('%s', (word, expected) => {
    const errors = errorsOf([word]);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain(expected);
  });

  test('a star beside names, and no way in', () => {
    expect(errorsOf(['--model-control-mode=explicit', '--load-model=*', '--load-model=a'])[0]).toContain('must stand alone');
    expect(errorsOf(['--allow-http=false', '--allow-grpc=false'])[0]).toContain('no way to send a request');
  });

  test('a faulty port is not also reported as taken', () => {
    expect(errorsOf(['--http-port=x', '--grpc-port=8000'])).toHaveLength(1);
  });

  test('closed doors and system-chosen ports do not clash', () => {
    accepted(['--grpc-port=8000', '--allow-http=false']);
    accepted(['--grpc-port=0', '--http-port=0', '--metrics-port=0']);
    accepted(['--grpc-port=8000', '--grpc-address=127.0.0.2']);
  });
});

describe('access', () => {
  test('nothing asks for a key, a header or a certificate unless it is told to', () => {
    const { access, http, grpc } = accepted([]).options;
    expect(access).toEqual({ keyFile: undefined, restrictedHttp: [], restrictedGrpc: [], corsOrigins: [] });
    expect([http.tls, grpc.tls]).toEqual([undefined, undefined]);
  });

  test('restricted APIs are written as Triton writes them', () => {
    const words = [
      '--http-restricted-api=inference,health:key=a=b:c',
      '--http-restricted-api=statistics:other=x',
      '--grpc-restricted-protocol=logging:k=v',
    ];
    const { access } = accepted(words).options;
    expect(access.restrictedHttp).toEqual([
      { apis: ['infer', 'health'], key: 'key', value: 'a=b:c' },
      { apis: ['statistics'], key: 'other', value: 'x' },
    ]);
    expect(access.restrictedGrpc).toEqual([{ apis: ['logging'], key: 'k', value: 'v' }]);
  });

  test('TLS of both ports', () => {
    const http = ['--http-tls-cert=c', '--http-tls-key=k', '--http-tls-ca=a', '--http-tls-mutual'];
    const grpc = ['--grpc-use-ssl-mutual', '--grpc-server-cert=c', '--grpc-server-key=k', '--grpc-root-cert=a'];
    const { options } = accepted([...http, ...grpc]);
    const files = { certFile: 'c', keyFile: 'k', caFile: 'a', mutual: true };
    expect([options.http.tls, options.grpc.tls]).toEqual([files, files]);
    expect(accepted(['--http-cors-origin=https://a.example:8443', '--http-cors-origin=*']).options.access.corsOrigins).toEqual([
      'https://a.example:8443',
      '*',
    ]);
  });
});

describe('flags of Triton that are not served', () => {
  test('one warning for each flag without effect, however often it is given', () => {
    const { warnings } = accepted(['--http-thread-count=4', '--trace-config=a=b', '--trace-config=c=d']);
    expect(warnings).toEqual([
      '--http-thread-count has no effect: one event loop handles all connections',
      '--trace-config has no effect: traces have another form here, see --trace-otlp-endpoint',
    ]);
  });

  test('a backend setting that nothing reads is a warning', () => {
    expect(accepted(['--backend-config=python,stub-timeout-seconds=30']).warnings).toEqual([
      '--backend-config=python,stub-timeout-seconds has no effect: the settings that are read are onnxruntime,default-max-batch-size',
    ]);
  });

  test('a refused flag may say what holds anyway', () => {
    expect(accepted(['--grpc-use-ssl=false', '--rate-limit=off', '--model-namespacing', 'false']).warnings).toEqual([]);
  });

  test('every default in the table is a value of its own flag', () => {
    for (const name of FLAG_NAMES) {
      const row = FLAGS[name];
      if (!row.repeatable && row.default !== undefined)
        expect([name, row.type.schema.safeParse(row.default).success]).toEqual([name, true]);
    }
  });
});

describe('--help', () => {
  const result = parseServeOptions(['--http-port=bad', '--help'], {});
  const text = result.kind === 'help' ? result.text : '';

  test('wins over everything else and shows every flag with its default', () => {
    for (const name of FLAG_NAMES) {
      const block = text.slice(text.indexOf(`\n  --${name}=`)).split('\n  --')[1] ?? '';
      expect(block).toMatch(new RegExp(`^${name}=[^]*Default:\\s`));
    }
  });

  test('fits 80 columns', () => {
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });
});
