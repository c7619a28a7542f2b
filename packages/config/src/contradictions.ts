/** What is wrong with, or of no use in, flags that are each well written. */
import type { FlagName, FlagValues } from './flag-table.js';

export interface Contradiction {
  /** The flags it lies between; it is not worth reporting while one of them has a fault of its own. */
  readonly between: readonly FlagName[];
  readonly text: string;
}

export function contradictions(values: FlagValues): Contradiction[] {
  return [
    ...controlModeFaults(values),
    ...frontDoorFaults(values),
    ...portClashes(values),
    ...tlsFaults(values),
    ...restrictionFaults(values),
    ...backendFaults(values),
  ];
}

/** Backend settings that are read, and the values they take. */
const BACKEND_SETTINGS: Readonly<Record<string, RegExp>> = { 'onnxruntime,default-max-batch-size': /^\d{1,6}$/ };

function backendFaults(values: FlagValues): Contradiction[] {
  return values['backend-config'].flatMap(({ backend, key, value }) => {
    const expected = BACKEND_SETTINGS[`${backend},${key}`];
    if (expected === undefined || expected.test(value)) return [];
    return [
      {
        between: ['backend-config'],
        text: `--backend-config=${backend},${key}: expected a whole number from 0 to 999999, found '${value}'`,
      },
    ];
  });
}

/** One sentence for each backend setting that nothing reads. */
export function unusedBackendSettings(values: FlagValues): string[] {
  return values['backend-config']
    .filter(({ backend, key }) => !Object.hasOwn(BACKEND_SETTINGS, `${backend},${key}`))
    .map(
      ({ backend, key }) =>
        `--backend-config=${backend},${key} has no effect: the settings that are read are ${Object.keys(BACKEND_SETTINGS).join(', ')}`,
    );
}

/** One sentence for a metrics setting that nothing follows from. */
export function unusedMetricSettings(values: FlagValues): string[] {
  if (!values['metrics-config'].some(({ key, value }) => key === 'histogram_latencies' && value === true)) return [];
  return ['--metrics-config=histogram_latencies=true has no effect: its one histogram is of decoupled models, which are not served'];
}

function controlModeFaults(values: FlagValues): Contradiction[] {
  const found: Contradiction[] = [];
  const mode = values['model-control-mode'];
  const loads = values['load-model'];
  if (mode !== 'explicit' && loads.length > 0) {
    found.push({
      between: ['load-model', 'model-control-mode'],
      text: `--load-model=${loads[0]} needs --model-control-mode=explicit, found ${mode}`,
    });
  }
  if (loads.includes('*') && loads.length > 1) {
    found.push({ between: ['load-model'], text: '--load-model=* must stand alone: it means every model' });
  }
  return found;
}

function frontDoorFaults(values: FlagValues): Contradiction[] {
  if (values['allow-http'] || values['allow-grpc']) return [];
  return [
    {
      between: ['allow-http', 'allow-grpc'],
      text: '--allow-http=false and --allow-grpc=false leave no way to send a request; allow one of them',
    },
  ];
}

function tlsFaults(values: FlagValues): Contradiction[] {
  const found: Contradiction[] = [];
  const need = (flag: FlagName, wanted: FlagName, why = ''): void => {
    found.push({ between: [flag, wanted], text: `--${flag} needs --${wanted}${why}` });
  };
  for (const flag of ['http-tls-key', 'http-tls-ca', 'http-tls-mutual'] as const)
    if (values[flag] && values['http-tls-cert'] === undefined) need(flag, 'http-tls-cert');
  if (values['http-tls-cert'] !== undefined && values['http-tls-key'] === undefined) need('http-tls-cert', 'http-tls-key');
  if (values['http-tls-mutual'] && values['http-tls-ca'] === undefined) need('http-tls-mutual', 'http-tls-ca');
  const mutual = values['grpc-use-ssl-mutual'];
  const use = mutual ? 'grpc-use-ssl-mutual' : 'grpc-use-ssl';
  for (const flag of ['grpc-server-cert', 'grpc-server-key'] as const) {
    if (values[use] && values[flag] === undefined) need(use, flag);
    if (!values[use] && values[flag] !== undefined) need(flag, 'grpc-use-ssl', '; without it the port is not encrypted');
  }
  if (mutual && values['grpc-root-cert'] === undefined) need(use, 'grpc-root-cert');
  if (!values[use] && values['grpc-root-cert'] !== undefined) need('grpc-root-cert', 'grpc-use-ssl-mutual');
  return found;
}

/** Two headers for one API would leave open which of them counts. */
function restrictionFaults(values: FlagValues): Contradiction[] {
  return (['http-restricted-api', 'grpc-restricted-protocol'] as const).flatMap((flag) => {
    const apis = values[flag].flatMap((group) => group.apis);
    const twice = apis.find((api, i) => apis.indexOf(api) !== i);
    if (twice === undefined) return [];
    const name = twice === 'infer' ? 'inference' : twice;
    return [{ between: [flag], text: `--${flag}: restricted api '${name}' can not be specified in multiple config groups` }];
  });
}

function portClashes(values: FlagValues): Contradiction[] {
  const doors = [
    { name: 'http-port', enabled: values['allow-http'], port: values['http-port'], address: values['http-address'] },
    { name: 'grpc-port', enabled: values['allow-grpc'], port: values['grpc-port'], address: values['grpc-address'] },
    {
      name: 'metrics-port',
      enabled: values['allow-metrics'],
      port: values['metrics-port'],
      address: values['metrics-address'] ?? values['http-address'],
    },
  ] as const;
  const open = doors.filter((door) => door.enabled && door.port !== 0);
  return open.flatMap((door, i) =>
    open
      .slice(0, i)
      .filter((other) => other.port === door.port && other.address === door.address)
      .map((other) => ({
        between: [other.name, door.name],
        text: `--${other.name} and --${door.name} are both ${door.port} on ${door.address}; they need a port each`,
      })),
  );
}
