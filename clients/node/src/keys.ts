// Keys: of one text, and of several fields. The rules are those of docs/keys.md.
import { types } from 'node:util';
import { isWellFormed, shown } from './canonical.js';
import type { Word } from './drivers.js';
import { KeyError } from './errors.js';
import { kindOf } from './identity.js';

/** Text, or bytes as they are. */
export type Key = string | Uint8Array;

/** A key as it is sent. Other types than text and Uint8Array are refused, never converted. */
export function keyWord(key: unknown, what = 'the key'): Word {
  if (typeof key !== 'string' && !types.isUint8Array(key)) {
    throw new KeyError(`${what} is a ${kindOf(key)}, neither a text nor a Uint8Array`);
  }
  if (key.length === 0) throw new KeyError(`${what} is empty`, { reason: 'key_empty' });
  if (typeof key !== 'string') return Buffer.from(key); // a copy: the caller may change it
  if (!isWellFormed(key)) throw new KeyError(`${what} has a lone surrogate: it is no UTF-8`);
  return key;
}

const separators = ':|/,;#=&{}\\ ';

/** The value of one field as text; null, an empty text and what is no text are refused. */
function fieldText(name: string, value: unknown): string {
  if (typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))) {
    return String(value === 0 ? 0 : value);
  }
  if (value === null || value === undefined || value === '') {
    throw new KeyError(`the value of '${name}' is ${value === '' ? 'empty' : String(value)}`,
      { reason: 'key_empty' });
  }
  if (typeof value !== 'string') {
    throw new KeyError(`the value of '${name}' is a ${kindOf(value)}, not a text`);
  }
  if (!isWellFormed(value)) throw new KeyError(`the value of '${name}' has a lone surrogate`);
  return value;
}

function escaped(value: string): string {
  return value.replace(/[\u0000-\u0020\u007f%:|/,;#=&{}\\]/g, (c) =>
    `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}

/**
 * `format` with the value of each `{name}` in its place, as in `order:{tenant}:{id}`; `{{` and `}}`
 * are braces. In a value the separators `: | / , ; # = & { } \ %`, blanks and control characters
 * are a % and two hexadecimal digits, so two sets of values that differ never give one key. Two
 * names need a separator between them. Values are texts, bigints or integers.
 *
 * Throws a KeyError that names the field.
 */
export function formatKey(format: string, fields: Readonly<Record<string, unknown>>): string {
  if (typeof format !== 'string' || !isWellFormed(format)) {
    throw new KeyError('the format is no text');
  }
  if (format === '') throw new KeyError('the format is empty', { reason: 'key_empty' });
  let key = '';
  let parted = true; // from the value before, if there is one
  const syntax = (why: string, at: number): never => {
    throw new KeyError(`format: ${why} at position ${at}`, { reason: 'syntax' });
  };
  for (let at = 0; at < format.length;) {
    const c = format[at] as string;
    if ((c !== '{' && c !== '}') || format[at + 1] === c) {
      parted ||= separators.includes(c);
      key += c;
      at += c === '{' || c === '}' ? 2 : 1;
      continue;
    }
    if (c === '}') syntax("'}' without '{'", at);
    const length = format.slice(at + 1).search(/[{}]/);
    if (length < 0 || format[at + 1 + length] === '{') syntax("'{' without '}'", at);
    const name = format.slice(at + 1, at + 1 + length);
    if (name === '') syntax('a name is missing', at);
    if (!parted) {
      syntax(`'${name}' is not parted from the name before it by one of ${separators}`, at);
    }
    if (!Object.hasOwn(fields, name)) {
      throw new KeyError(`format: there is no field '${name}'`, { reason: 'bad_option' });
    }
    key += escaped(fieldText(name, fields[name]));
    parted = false;
    at += length + 2;
  }
  return key;
}

/**
 * The fields with | between them, each | and \ in a field behind a \. Two lists of fields that differ
 * never give one key. An empty field is a field; none at all is a KeyError, as is a field that is no
 * text.
 */
export function compositeKey(fields: readonly string[]): string {
  if (fields.length === 0) throw new KeyError('no fields', { reason: 'key_empty' });
  const texts = Array.from(fields, (field: unknown, i) => {
    if (typeof field !== 'string') {
      throw new KeyError(`field ${i} is a ${kindOf(field)}, not a text`);
    }
    if (!isWellFormed(field)) {
      throw new KeyError(`field ${i} has a lone surrogate: ${shown(field)}`);
    }
    return field.replace(/[|\\]/g, '\\$&');
  });
  return texts.length === 1 && texts[0] === '' ? '\\e' : texts.join('|');
}
