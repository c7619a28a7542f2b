/**
 * Cuts protobuf text into tokens with their places. It is lenient: it only has to find where things stand, the protobuf
 * library decides what is right.
 */

export interface Place {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
}

export interface Token extends Place {
  readonly kind: 'identifier' | 'string' | 'number' | 'punctuation' | 'template' | 'bad' | 'end';
  /** As written, quotes included. */
  readonly text: string;
}

/** `template` is a place-holder that some tool should have filled in: `${name}`. */
const PATTERN =
  /(?<skip>[\s]+|#[^\n]*)|(?<template>\$\{[^}\n]*\}|\$[A-Za-z_]\w*)|(?<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?<number>-?\s*(?:0[xX][0-9a-fA-F]+|\d[\w.]*(?:(?<=[eE])[+-]\d+)?|\.\d\w*)|-\s*(?:inf|nan|infinity)\b)|(?<identifier>[A-Za-z_]\w*)|(?<punctuation>[{}<>[\]:,;])|(?<bad>["'][^\n]*|.)/gsy;

export function tokenise(text: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let lineStart = 0;
  for (const match of text.matchAll(PATTERN)) {
    const found = match[0];
    const groups = match.groups ?? {};
    const kind = (Object.keys(groups) as (Token['kind'] | 'skip')[]).find((name) => groups[name] !== undefined);
    if (kind !== undefined && kind !== 'skip') tokens.push({ kind, text: found, line, column: match.index - lineStart + 1 });
    for (let at = found.indexOf('\n'); at >= 0; at = found.indexOf('\n', at + 1)) {
      line += 1;
      lineStart = match.index + at + 1;
    }
  }
  tokens.push({ kind: 'end', text: 'end of file', line, column: text.length - lineStart + 1 });
  return tokens;
}
