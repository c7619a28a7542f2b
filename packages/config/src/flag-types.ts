/** The kinds of values flags have. Messages say what was expected; the caller puts the flag and the text before them. */
import { isIPv6 } from 'node:net';
import { z } from 'zod';
import type { FlagType } from './flag.js';
import { isKeyScope } from './keys/scopes.js';
import type { RestrictedApi } from './serve-options.js';

const TRUE = new Set(['true', '1', 'on']);
const FALSE = new Set(['false', '0', 'off']);

/** Like {@link boolean}, but may stand without a value, which means `true`. */
export const toggle: FlagType<boolean> = {
  placeholder: '<boolean>',
  isSwitch: true,
  schema: z.string().transform((text, context) => {
    const word = text.toLowerCase();
    if (TRUE.has(word)) return true;
    if (FALSE.has(word)) return false;
    context.addIssue({ code: 'custom', message: 'expected true or false' });
    return z.NEVER;
  }),
};

export const text = (placeholder: string): FlagType<string> => ({
  placeholder,
  isSwitch: false,
  schema: z.string().min(1, 'expected a value, found an empty one'),
});

export const integer = (placeholder: string, min: number, max = Number.MAX_SAFE_INTEGER): FlagType<number> => ({
  placeholder,
  isSwitch: false,
  schema: z.string().transform((written, context) => {
    const value = /^[+-]?\d+$/.test(written) ? Number(written) : NaN;
    if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `between ${min} and ${max}`;
    context.addIssue({ code: 'custom', message: `expected a whole number ${range}` });
    return z.NEVER;
  }),
});

/** A share, 0 to 1. */
export const fraction: FlagType<number> = {
  placeholder: '<share>',
  isSwitch: false,
  schema: z.string().transform((written, context) => {
    const value = /^(\d+\.?\d*|\.\d+)$/.test(written) ? Number(written) : NaN;
    if (value >= 0 && value <= 1) return value;
    context.addIssue({ code: 'custom', message: 'expected a number between 0 and 1' });
    return z.NEVER;
  }),
};

/** `http://` or `https://`, without credentials: others see a command line. */
export const httpUrl: FlagType<string> = {
  placeholder: '<url>',
  isSwitch: false,
  schema: z.string().refine(isHttpUrl, 'expected http://host:port or https://host:port, without user and password'),
};

function isHttpUrl(written: string): boolean {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
}

export const port = integer('<port>', 0, 65535);

export const oneOf = <const Value extends string>(values: readonly [Value, ...Value[]]): FlagType<Value> => ({
  placeholder: `<${values.join('|')}>`,
  isSwitch: false,
  schema: z.string().pipe(z.enum(values, { error: `expected one of ${values.join(', ')}` })),
});

/** `<backend>,<key>=<value>`. */
export const backendSetting: FlagType<{ readonly backend: string; readonly key: string; readonly value: string }> = {
  placeholder: '<backend>,<key>=<value>',
  isSwitch: false,
  schema: z.string().transform((written, context) => {
    const [, backend, key, value] = /^([^,=]+),([^=]+)=(.*)$/.exec(written) ?? [];
    if (backend !== undefined && key !== undefined && value !== undefined) return { backend, key, value };
    context.addIssue({ code: 'custom', message: 'expected <backend>,<key>=<value>, as in onnxruntime,default-max-batch-size=4' });
    return z.NEVER;
  }),
};

/** One setting of `--metrics-config`. */
export type MetricSetting =
  | { readonly key: 'counter_latencies' | 'histogram_latencies' | 'summary_latencies'; readonly value: boolean }
  | { readonly key: 'summary_quantiles'; readonly value: readonly number[] };

/** The error of a quantile is met to this much; less cannot be asked for. */
const SMALLEST_QUANTILE_ERROR = 0.001;
const QUANTILE = /^(0?\.\d+):(\d?\.?\d+)$/;

/** `<key>=<value>`, as Triton writes it. */
export const metricSetting: FlagType<MetricSetting> = {
  placeholder: '<key>=<value>',
  isSwitch: false,
  schema: z.string().transform((written, context) => {
    const complain = (message: string): never => {
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    };
    const [, key, value = ''] = /^([^=]+)=(.*)$/.exec(written) ?? [];
    switch (key) {
      case 'counter_latencies':
      case 'histogram_latencies':
      case 'summary_latencies':
        if (value !== 'true' && value !== 'false') return complain(`expected ${key}=true or ${key}=false`);
        return { key, value: value === 'true' };
      case 'summary_quantiles': {
        const pairs = value.split(',').map((pair) => QUANTILE.exec(pair));
        const quantiles = pairs.map((pair) => Number(pair?.[1]));
        if (!quantiles.every((quantile) => quantile > 0 && quantile < 1))
          return complain('expected <quantile>:<error>,... with quantiles between 0 and 1, as in summary_quantiles=0.5:0.05,0.99:0.001');
        if (pairs.some((pair) => Number(pair?.[2]) < SMALLEST_QUANTILE_ERROR))
          return complain(`expected an error of at least ${SMALLEST_QUANTILE_ERROR} for each quantile`);
        return { key, value: quantiles };
      }
      default:
        return complain('expected counter_latencies, histogram_latencies, summary_latencies or summary_quantiles, then = and a value');
    }
  }),
};

/** Header names by RFC 9110, without those that frame a message. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FRAMING = new Set([
  'host',
  'connection',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'accept-encoding',
  'expect',
  'te',
  'upgrade',
  'origin',
]);

/** `<api>[,<api>...]:<key>=<value>`, as Triton writes it; its `inference` is the scope `infer`. */
export const restrictedApi: FlagType<RestrictedApi> = {
  placeholder: '<apis>:<key>=<value>',
  isSwitch: false,
  schema: z.string().transform((written, context) => {
    const [, names, key, value] = /^([^:]+):([^=]+)=(.+)$/.exec(written) ?? [];
    const complain = (message: string): never => {
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    };
    if (names === undefined || key === undefined || value === undefined)
      return complain('expected <apis>:<key>=<value>, as in model-repository,statistics:admin-key=secret');
    if (!HEADER_NAME.test(key) || FRAMING.has(key.toLowerCase())) return complain(`expected the name of a header of its own before =`);
    const apis = names.split(',').map((name) => (name === 'inference' ? 'infer' : name));
    const unknown = names.split(',').find((name) => name !== 'inference' && (name === 'infer' || name === 'metrics' || !isKeyScope(name)));
    if (unknown !== undefined) return complain(`unknown restricted api '${unknown}'`);
    return { apis: apis.filter(isKeyScope), key, value };
  }),
};

/** `https://host[:port]` as browsers send it, or `*`. */
export const origin: FlagType<string> = {
  placeholder: '<origin>',
  isSwitch: false,
  schema: z.string().refine(isOrigin, 'expected an origin as browsers send it, as in https://app.example.com, or *'),
};

function isOrigin(text: string): boolean {
  return text === '*' || (URL.canParse(text) && new URL(text).origin === text);
}

/** A host name or an address, without a port. */
export const host: FlagType<string> = {
  placeholder: '<host>',
  isSwitch: false,
  schema: z
    .string()
    .refine((written) => /^[\w.-]+$/.test(written) || isIPv6(written), 'expected a host name or an IP address, without brackets and port'),
};

/** Addresses of one Redis: `redis://[user:password@]host[:port][/database]`, separated by commas. */
export const redisUrls: FlagType<readonly string[]> = {
  placeholder: '<url>[,<url>...]',
  isSwitch: false,
  // The text is not shown: it may hold a password.
  schema: z.string().transform((written, context) => {
    const urls = written.split(',');
    if (urls.every(isRedisUrl)) return urls;
    context.addIssue({ code: 'custom', message: 'expected redis://host:port or rediss://host:port, more of them after commas' });
    return z.NEVER;
  }),
};

function isRedisUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d{0,4})?$/.test(url.pathname);
}
