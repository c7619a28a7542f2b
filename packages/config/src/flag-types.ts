/** The kinds of values flags have. Messages say what was expected; the caller puts the flag and the text before them. */
import { z } from 'zod';
import type { FlagType } from './flag.js';

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
