/**
 * Follows protobuf text along its schema and records where each field stands, and what does not fit and where. The
 * protobuf library judges the text; this says where, and it says it of every fault, not the first.
 */
import type { DescEnum, DescField, DescMessage, ScalarType } from '@bufbuild/protobuf';
import { nearest } from './nearest.js';
import { tokenise, type Place, type Token } from './tokens.js';

/** One place where the text does not fit the schema. */
export interface TextFault extends Place {
  /** Path of the field, e.g. `input[0].data_type`; "" at the top. */
  readonly path: string;
  readonly expected: string;
  /** As written. */
  readonly found: string;
  readonly hint: string | undefined;
}

export interface LocatedText {
  /** By path, e.g. `input[0].dims`, `input[0].dims[1]`, `parameters["level"].string_value`: where its name or value stands. */
  readonly places: ReadonlyMap<string, Place>;
  readonly faults: readonly TextFault[];
}

/** Faults after this many are noise. */
const MAX_FAULTS = 20;
const MAX_DEPTH = 100;

const INTEGER = /^-?\s*(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)$/;
const FLOAT = /^-?\s*(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?$|^-?\s*(?:inf|infinity|nan)$/i;

// ScalarType's numbers, since the enum is a type-only import in isolated modules.
const FLOATS: readonly ScalarType[] = [1, 2];
const BOOL: ScalarType = 8;
const STRINGS: readonly ScalarType[] = [9, 12];
const UNSIGNED: readonly ScalarType[] = [4, 6, 7, 13];
const WIDE: readonly ScalarType[] = [3, 4, 6, 16, 18];

export function locateText(schema: DescMessage, text: string): LocatedText {
  const locator = new Locator(tokenise(text));
  locator.message(schema, '', undefined, 0);
  return { places: locator.places, faults: locator.faults };
}

function found(token: Token): string {
  return token.kind === 'end' ? token.text : `'${token.text.length > 60 ? `${token.text.slice(0, 60)}…` : token.text}'`;
}

class Locator {
  readonly places = new Map<string, Place>();
  readonly faults: TextFault[] = [];
  #at = 0;

  constructor(private readonly tokens: readonly Token[]) {}

  get #token(): Token {
    return this.tokens[Math.min(this.#at, this.tokens.length - 1)] as Token;
  }

  #is(...texts: string[]): boolean {
    return this.#token.kind === 'punctuation' && texts.includes(this.#token.text);
  }

  #skip(...texts: string[]): boolean {
    const matches = this.#is(...texts);
    if (matches) this.#at += 1;
    return matches;
  }

  #fault(path: string, token: Token, expected: string, hint?: string): void {
    if (this.faults.length >= MAX_FAULTS) return;
    const template = token.kind === 'template' ? `${token.text} is a place-holder that was never filled in` : undefined;
    const quotes = token.kind === 'bad' && /^["']/.test(token.text) ? 'the string has no closing quote on its line' : undefined;
    this.faults.push({ path, expected, found: found(token), hint: template ?? quotes ?? hint, line: token.line, column: token.column });
  }

  /** Fields up to `close` (consumed), or to the end of the text at the top. */
  message(desc: DescMessage, path: string, close: string | undefined, depth: number): void {
    const counts = new Map<string, number>();
    const oneofs = new Map<string, string>();
    while (this.#token.kind !== 'end') {
      if (close !== undefined && this.#skip(close)) return;
      const name = this.#token;
      if (name.kind !== 'identifier') {
        this.#fault(path, name, close === undefined ? 'a field name' : `a field name or '${close}'`);
        this.#at += 1;
        continue;
      }
      this.#at += 1;
      const field = desc.fields.find((f) => f.name === name.text);
      if (field === undefined) {
        const suggestion = nearest(name.text, desc.fields.map((f) => f.name)); // prettier-ignore
        this.#fault(path, name, `a field of ${desc.name}`, suggestion === undefined ? undefined : `did you mean ${suggestion}?`);
        this.#skip(':');
        this.#skipValue();
      } else {
        this.#fieldNamed(field, name, path, counts, oneofs, depth);
      }
      this.#skip(',', ';');
    }
    if (close !== undefined) this.#fault(path, this.#token, `'${close}'`, 'a brace that was opened is never closed');
  }

  #fieldNamed(
    field: DescField,
    name: Token,
    prefix: string,
    counts: Map<string, number>,
    oneofs: Map<string, string>,
    depth: number,
  ): void {
    const path = prefix === '' ? field.name : `${prefix}.${field.name}`;
    const repeated = field.fieldKind === 'list' || field.fieldKind === 'map';
    const seen = counts.get(field.name) ?? 0;
    if (!repeated && seen > 0) this.#fault(path, name, `${field.name} once`, 'it is set a second time here');
    const rival = field.oneof === undefined ? undefined : oneofs.get(field.oneof.name);
    if (rival !== undefined && rival !== field.name)
      this.#fault(path, name, `one of ${rival} and ${field.name}`, 'they exclude each other');
    if (field.oneof !== undefined) oneofs.set(field.oneof.name, field.name);
    if (!this.places.has(path)) this.places.set(path, name);
    const colon = this.#skip(':');
    const isMessage =
      field.fieldKind === 'message' || field.fieldKind === 'map' || (field.fieldKind === 'list' && field.listKind === 'message');
    if (!colon && !isMessage) this.#fault(path, this.#token, `':' after ${field.name}`);
    if (repeated && this.#skip('[')) {
      let index = seen;
      while (!this.#is(']') && this.#token.kind !== 'end') {
        const before = this.#at;
        this.#value(field, path, index, depth);
        index += 1;
        if (!this.#skip(',') && !this.#is(']')) {
          if (this.#at === before) this.#at += 1;
          this.#fault(path, this.#token, `',' or ']'`);
          if (this.#token.kind === 'identifier') break;
        }
      }
      this.#skip(']');
      counts.set(field.name, index);
      return;
    }
    this.#value(field, path, seen, depth);
    counts.set(field.name, seen + 1);
  }

  #value(field: DescField, path: string, index: number, depth: number): void {
    const own = field.fieldKind === 'list' ? `${path}[${index}]` : path;
    if (field.fieldKind === 'list') this.places.set(own, this.#token);
    if (field.fieldKind === 'map') this.#mapEntry(field, path, depth);
    else if (field.message !== undefined) this.#braces(field.message, own, depth);
    else if (field.enum !== undefined) this.#enumValue(field.enum, own);
    else if (field.scalar !== undefined) this.#scalar(field.scalar, own);
  }

  #braces(desc: DescMessage, path: string, depth: number): void {
    const open = this.#token;
    const close = this.#is('{') ? '}' : '>';
    if (!this.#skip('{', '<')) {
      this.#fault(path, open, `'{'`);
      this.#skipValue();
      return;
    }
    if (depth >= MAX_DEPTH) this.#skipTo(close);
    else this.message(desc, path, close, depth + 1);
  }

  /** `{ key: "k" value: ... }`: what is inside the value is recorded under `path["k"]`. */
  #mapEntry(field: DescField & { fieldKind: 'map' }, path: string, depth: number): void {
    const open = this.#token;
    const close = this.#is('{') ? '}' : '>';
    if (!this.#skip('{', '<')) {
      this.#fault(path, open, `'{'`, 'an entry is written { key: ... value: ... }');
      this.#skipValue();
      return;
    }
    let key = '';
    while (!this.#skip(close) && this.#token.kind !== 'end') {
      const name = this.#token;
      this.#at += 1;
      this.#skip(':');
      if (name.text === 'key') {
        key = this.#token.text.replace(/^["']|["']$/g, '');
        this.places.set(`${path}["${key}"]`, open);
        this.#skipValue();
      } else if (name.text === 'value') {
        const own = `${path}["${key}"]`;
        if (field.message !== undefined) this.#braces(field.message, own, depth);
        else if (field.enum !== undefined) this.#enumValue(field.enum, own);
        else if (field.scalar !== undefined) this.#scalar(field.scalar, own);
      } else {
        this.#fault(path, name, `'key' or 'value'`, 'an entry is written { key: ... value: ... }');
        this.#skipValue();
      }
      this.#skip(',', ';');
    }
  }

  #enumValue(desc: DescEnum, path: string): void {
    const token = this.#token;
    // What stands for "not stated" is nothing to write.
    const names = desc.values.map((value) => value.name).filter((name) => !name.endsWith('_INVALID'));
    const good = (token.kind === 'identifier' && names.includes(token.text)) || (token.kind === 'number' && INTEGER.test(token.text));
    if (!good) {
      const suggestion = nearest(token.text.replace(/^["']|["']$/g, ''), names);
      const hint =
        token.kind === 'string' ? `write it without quotes: ${suggestion ?? names[0] ?? ''}` : suggestion && `did you mean ${suggestion}?`;
      this.#fault(path, token, `one of ${names.join(', ')}`, hint);
    }
    this.#skipValue();
  }

  #scalar(type: ScalarType, path: string): void {
    const token = this.#token;
    if (STRINGS.includes(type)) {
      if (token.kind !== 'string')
        this.#fault(path, token, 'a string in quotes', token.kind === 'identifier' ? `write "${token.text}"` : undefined);
      // Neighbouring strings are one string.
      while (this.#token.kind === 'string' && this.tokens[this.#at + 1]?.kind === 'string') this.#at += 1;
    } else if (type === BOOL) {
      const good = /^(?:true|false|True|False|t|f|0|1)$/.test(token.text);
      if (!good) this.#fault(path, token, 'true or false');
    } else if (FLOATS.includes(type)) {
      if (!FLOAT.test(token.text)) this.#fault(path, token, 'a number');
    } else {
      this.#integer(type, token, path);
    }
    this.#skipValue();
  }

  #integer(type: ScalarType, token: Token, path: string): void {
    const unsigned = UNSIGNED.includes(type);
    const word = `${unsigned ? 'a non-negative integer' : 'an integer'}`;
    if (token.kind !== 'number' || !INTEGER.test(token.text)) {
      this.#fault(path, token, word, token.kind === 'string' ? 'write it without quotes' : undefined);
      return;
    }
    const magnitude = token.text.replace(/^-\s*/, '').replace(/^0(?=[0-7])/, '0o');
    const value = token.text.startsWith('-') ? -BigInt(magnitude) : BigInt(magnitude);
    const bits = WIDE.includes(type) ? 64n : 32n;
    const [min, max] = unsigned ? [0n, (1n << bits) - 1n] : [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n];
    if (value < min || value > max) this.#fault(path, token, `${word} in ${min}..${max}`);
  }

  /** Steps over one value of any form, balanced. */
  #skipValue(): void {
    const pairs: Readonly<Record<string, string>> = { '{': '}', '<': '>', '[': ']' };
    const close = this.#token.kind === 'punctuation' ? pairs[this.#token.text] : undefined;
    if (close !== undefined) {
      this.#at += 1;
      this.#skipTo(close);
    } else if (!this.#is('}', '>', ']', ',', ';') && this.#token.kind !== 'end') {
      this.#at += 1;
    }
  }

  /** Steps behind the bracket that closes the one just opened. */
  #skipTo(close: string): void {
    let depth = 1;
    const open = { '}': '{', '>': '<', ']': '[' }[close] ?? '';
    while (depth > 0 && this.#token.kind !== 'end') {
      if (this.#is(open)) depth += 1;
      else if (this.#is(close)) depth -= 1;
      this.#at += 1;
    }
  }
}
