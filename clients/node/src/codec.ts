// How results become bytes, and how those are stored.
import { isDeepStrictEqual, types } from 'node:util';
import { numberText, shown } from './canonical.js';
import { NoResultError } from './errors.js';
import { isPlain, kindOf } from './identity.js';

/** Turns results into bytes and back. Either may give a promise; it is awaited. */
export interface Codec {
  encode(value: unknown): Uint8Array | PromiseLike<Uint8Array>;
  decode(bytes: Buffer): unknown;
}

/**
 * JSON, the default. `undefined` is no bytes at all. What JSON would change (a Date, a Map, NaN, a
 * member that is undefined, an instance of a class) is not kept; `typed` keeps the most of that.
 */
export const json: Codec = {
  encode(value) {
    if (value === undefined) return Buffer.alloc(0);
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined) throw new TypeError(`a ${typeof value} is no JSON`);
    return Buffer.from(text);
  },
  decode(bytes) {
    return bytes.length === 0 ? undefined : parsed(bytes.toString());
  },
};

/**
 * JSON in which Date, Map, Set, bigint, Buffer, undefined, NaN, infinities and -0 are objects with one
 * member: `$date`, `$map`, `$set`, `$bigint`, `$bytes`, `$undefined`, `$number`. A name that begins
 * with $ gets another one in front.
 */
export const typed: Codec = {
  encode(value) {
    return value === undefined ? Buffer.alloc(0)
      : Buffer.from(JSON.stringify(tagged(value, '$', new Set())));
  },
  decode(bytes) {
    return bytes.length === 0 ? undefined : untagged(parsed(bytes.toString()));
  },
};

/** A Buffer as it is. */
export const bytes: Codec = {
  encode(value) {
    if (value instanceof Uint8Array) return value;
    throw new TypeError(`a ${kindOf(value)} is not a Buffer`);
  },
  decode: (found) => found,
};

/** JSON.parse(), but a number that it would change, as another language may have written, is an error. */
function parsed(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!mayRound.test(text)) return value;
  for (const token of numbersOf(text)) {
    if (mayRound.test(token) && !isExact(token)) {
      throw new TypeError(`the result has the number ${shown(token)}, which JavaScript would change`);
    }
  }
  return value;
}

// Numbers of 15 digits without an exponent come back as they are.
const mayRound = /\d{16}|[\d.]{17}|\d[eE]/;
const number = /-?[\d.eE+-]+/y;
const [quote, minus, zero, nine] = [0x22, 0x2d, 0x30, 0x39];

/** The numbers of a text that is JSON, outside of its strings. */
function* numbersOf(text: string): Iterable<string> {
  for (let at = 0; at < text.length;) {
    const first = text.charCodeAt(at);
    if (first === quote) {
      at = endOfString(text, at);
    } else if (first === minus || (first >= zero && first <= nine)) {
      number.lastIndex = at;
      const [token] = number.exec(text) as RegExpExecArray;
      yield token;
      at += token.length;
    } else {
      ++at;
    }
  }
}

/** Behind the quote that ends a string: one with an even number of backslashes in front. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); ; end = text.indexOf('"', end + 1)) {
    let bare = end;
    while (text[bare - 1] === '\\') --bare;
    if ((end - bare) % 2 === 0) return end + 1;
  }
}

/** Whether a number is a double to its last digit. */
function isExact(token: string): boolean {
  const double = Number(token);
  try {
    return Number.isFinite(double) && numberText(String(double)) === numberText(token);
  } catch { // further from its point than any double
    return false;
  }
}

function tag(name: string, value: unknown): object {
  return { [`$${name}`]: value };
}

function tagged(value: unknown, path: string, open: Set<object>): unknown {
  switch (typeof value) {
    case 'undefined':
      return tag('undefined', true);
    case 'bigint':
      return tag('bigint', String(value));
    case 'number':
      if (Object.is(value, -0)) return tag('number', '-0');
      return Number.isFinite(value) ? value : tag('number', String(value));
    case 'boolean':
    case 'string':
      return value;
    case 'object':
      if (value === null) return null;
      break;
    default:
      throw new TypeError(`${path}: a ${typeof value}`);
  }
  if (open.has(value)) throw new TypeError(`${path}: a value that contains itself`);
  open.add(value);
  const made = taggedObject(value, path, (each, place) => tagged(each, place, open));
  open.delete(value);
  return made;
}

function taggedObject(value: object, path: string,
  inside: (value: unknown, path: string) => unknown): unknown {
  if (Buffer.isBuffer(value)) return tag('bytes', value.toString('base64'));
  if (types.isDate(value)) return tag('date', value.toISOString()); // throws if it is invalid
  if (types.isMap(value)) {
    return tag('map', [...value].map(([key, each], i) =>
      [inside(key, `${path} key ${i}`), inside(each, `${path} value ${i}`)]));
  }
  if (types.isSet(value)) {
    return tag('set', [...value].map((each) => inside(each, `${path} element`)));
  }
  if (Array.isArray(value)) return Array.from(value, (each, i) => inside(each, `${path}[${i}]`));
  if (!isPlain(value)) throw new TypeError(`${path}: an instance of ${kindOf(value)}`);
  return Object.fromEntries(Object.entries(value).map(([name, each]) =>
    [name.startsWith('$') ? `$${name}` : name, inside(each, `${path}.${name}`)]));
}

function untagged(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(untagged);
  const entries = Object.entries(value);
  const [name, found] = entries.length === 1 ? entries[0] as [string, unknown] : ['', undefined];
  switch (name) {
    case '$undefined': return undefined;
    case '$bigint': return BigInt(found as string);
    case '$number': return Number(found);
    case '$bytes': return Buffer.from(found as string, 'base64');
    case '$date': return new Date(found as string);
    case '$set': return new Set((found as unknown[]).map(untagged));
    case '$map': return new Map((found as [unknown, unknown][])
      .map(([key, each]) => [untagged(key), untagged(each)]));
    default: return Object.fromEntries(entries.map(([key, each]) =>
      [key.startsWith('$$') ? key.slice(1) : key, untagged(each)]));
  }
}

// --- what is stored -----------------------------------------------------------------------------
//
//   nothing       undefined, of json and typed
//   00            the work is done, but its result was not kept
//   01, bytes     bytes: always of `bytes`, and of other codecs where they could be mistaken
//   else          what the codec gave: JSON text
//
// All clients of Semel use these marks, which are no JSON text.

/** Stored where a result could not be. */
export const notKept = Buffer.from([0]);
const escape = Buffer.from([1]);
const texts: ReadonlySet<Codec> = new Set([json, typed]); // their bytes are no marks

/**
 * The bytes to store for a result. Throws where the codec fails, and where a repeat would get another
 * value than this one: types count.
 */
export async function stored(codec: Codec, value: unknown): Promise<Buffer> {
  const encoded: unknown = await codec.encode(value);
  if (!types.isUint8Array(encoded)) throw new TypeError(`the codec gave a ${kindOf(encoded)}`);
  const text = Buffer.from(encoded);
  const again = await codec.decode(Buffer.from(text));
  if (!isDeepStrictEqual(value, again)) {
    throw new TypeError(`repeats would get another value: ${difference(value, again, '$')}`);
  }
  const [first = 0] = text;
  const isMarked = codec === bytes || (!texts.has(codec) && first <= 1);
  return isMarked ? Buffer.concat([escape, text]) : text;
}

/** The result of stored bytes. Throws a NoResultError where there is none. */
export async function restored(codec: Codec, found: Buffer | undefined): Promise<unknown> {
  if (found === undefined || found.equals(notKept)) throw new NoResultError();
  if (found[0] === 1) return codec.decode(found.subarray(1));
  if (found.length === 0 && codec === bytes) throw new NoResultError();
  try {
    return await codec.decode(found);
  } catch (error) {
    throw found.length === 0 ? new NoResultError() : error;
  }
}

/** Where two values differ first, for people. */
function difference(value: unknown, again: unknown, path: string): string {
  const [before, after] = [kindOf(value), kindOf(again)];
  if (before !== after) return `${path} is a ${before}, and would be a ${after}`;
  if (typeof value === 'object' && value !== null && (isPlain(value) || Array.isArray(value))) {
    const names = new Set([...Object.keys(value), ...Object.keys(again as object)]);
    for (const name of names) {
      const inside = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`;
      if (Object.hasOwn(value, name) !== Object.hasOwn(again as object, name)) {
        return `${inside} would be ${Object.hasOwn(value, name) ? 'absent' : 'there'}`;
      }
      const [one, other] = [value, again].map((each) => (each as Record<string, unknown>)[name]);
      if (!isDeepStrictEqual(one, other)) return difference(one, other, inside);
    }
  }
  return `${path}, a ${before}`;
}
