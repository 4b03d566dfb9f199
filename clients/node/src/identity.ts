// How values become the canonical text of docs/identity.md.
import { createHash } from 'node:crypto';
import { types } from 'node:util';
import { Digits, isWellFormed, Members, numberText, shown, write, type Tree } from './canonical.js';
import { KeyError, NotCanonicalError } from './errors.js';

const operationBytesMax = 512;
const elementsMax = 1 << 20;
const levelsMax = 1000; // of a value; the text is refused before

/** Whose call it is. What is not named is shared by all. */
export interface Scope {
  tenant?: string;
  user?: string;
}

export interface Identity {
  /** The canonical text of `[operation, scope, arguments]`. */
  canonical: string;
  /** SHA-256 of it in hexadecimal digits: a key of the call. */
  key: string;
  /** The first 16 bytes of it: the fingerprint with number 9. */
  fingerprint: string;
}

/**
 * A number with all its digits, which JavaScript has no type for: `new ExactNumber('19.990')`. For
 * integers a bigint is the same.
 */
export class ExactNumber {
  readonly text: string;

  /** Throws a NotCanonicalError if it is not a number of JSON. */
  constructor(text: string) {
    this.text = numberText(text);
  }
}

/** Bytes of any view or buffer, without a copy. */
export function bytesOf(value: unknown): Buffer | undefined {
  if (ArrayBuffer.isView(value)) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  return types.isAnyArrayBuffer(value) ? Buffer.from(value) : undefined;
}

/** Of an object, also one of another realm. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype
    || (Object.getPrototypeOf(prototype) === null
      && Object.hasOwn(prototype as object, 'isPrototypeOf'));
}

/** What a value is, for people. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'function') return `function ${value.name || 'without a name'}`;
  if (typeof value !== 'object') return typeof value;
  let prototype: unknown;
  try {
    prototype = Object.getPrototypeOf(value);
    const name: unknown = (prototype as object | null)?.constructor?.name;
    return typeof name === 'string' && name !== '' ? name : 'object';
  } catch {
    return 'object';
  }
}

/** ISO 8601 in UTC, a fraction of a second without zeros at its end. */
function timeText(date: Date, path: string): string {
  if (Number.isNaN(date.getTime())) throw new NotCanonicalError(path, 'an invalid Date');
  return date.toISOString().replace(/\.?0+Z$/, 'Z');
}

/** Turns one value into a tree; `#open` are the objects around the one that is looked at. */
class Reader {
  readonly #open = new Set<object>();
  #values = 0;

  tree(value: unknown, path: string): Tree {
    if (++this.#values > elementsMax) {
      throw new NotCanonicalError(path, `more than ${elementsMax} values`);
    }
    switch (typeof value) {
      case 'undefined':
        return null;
      case 'boolean':
      case 'string':
        return value;
      case 'bigint':
        return new Digits(numberText(String(value), path));
      case 'number':
        return this.#number(value, path);
      case 'object':
        return value === null ? null : this.#object(value, path);
      default:
        throw new NotCanonicalError(path, `a ${kindOf(value)}`);
    }
  }

  #number(value: number, path: string): Digits {
    if (!Number.isFinite(value)) throw new NotCanonicalError(path, `${value}`);
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      throw new NotCanonicalError(path, `${value} is beyond 2^53 - 1, where a number may have `
        + 'been rounded: give a bigint');
    }
    return new Digits(numberText(String(value), path));
  }

  #object(value: object, path: string): Tree {
    if (this.#open.has(value)) throw new NotCanonicalError(path, 'a value that contains itself');
    if (this.#open.size > levelsMax) throw new NotCanonicalError(path, 'too many levels');
    this.#open.add(value);
    const tree = this.#opened(value, path);
    this.#open.delete(value);
    return tree;
  }

  #opened(value: object, path: string): Tree {
    if (value instanceof ExactNumber) return new Digits(value.text);
    const bytes = bytesOf(value);
    if (bytes !== undefined) return new Members([['$bytes', bytes.toString('base64')]]);
    if (Array.isArray(value) || types.isArgumentsObject(value)) {
      return this.#array(value as unknown as ArrayLike<unknown>, path);
    }
    if (types.isDate(value)) return this.#bare(value, path) ?? timeText(value, path);
    if (types.isSet(value)) return this.#bare(value, path) ?? this.#set(value, path);
    if (types.isMap(value)) return this.#bare(value, path) ?? this.#map(value, path);
    if (value instanceof URLSearchParams || value instanceof FormData) {
      return this.#bare(value, path) ?? this.#pairs(value, path);
    }
    if (types.isPromise(value)) throw new NotCanonicalError(path, 'a Promise');
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === 'function') {
      return this.tree(toJSON.call(value, ''), path);
    }
    if (!isPlain(value)) {
      throw new NotCanonicalError(path, `an instance of ${kindOf(value)}, which has no toJSON`);
    }
    return this.#members(value, path);
  }

  /** Refuses own members, which the text would not have. */
  #bare(value: object, path: string): undefined {
    const [name] = Object.keys(value);
    if (name !== undefined) {
      throw new NotCanonicalError(`${path}.${name}`, `a member of a ${kindOf(value)}`);
    }
    return undefined;
  }

  #array(value: ArrayLike<unknown>, path: string): Tree[] {
    if (value.length > elementsMax) {
      throw new NotCanonicalError(path, `more than ${elementsMax} values`);
    }
    const named = Object.keys(value).find((each) => !/^\d+$/.test(each));
    if (named !== undefined) {
      throw new NotCanonicalError(`${path}.${named}`, 'a member of an array');
    }
    return Array.from({ length: value.length }, (_, i) => this.tree(value[i], `${path}[${i}]`));
  }

  #set(value: ReadonlySet<unknown>, path: string): Tree {
    let i = 0;
    return new Members([['$set',
      [...value].map((each) => this.tree(each, `${path} element ${i++}`))]]);
  }

  #map(value: ReadonlyMap<unknown, unknown>, path: string): Tree {
    const entries = [...value];
    if (entries.every(([key]) => typeof key === 'string')) {
      return new Members(entries.map(([key, each]) =>
        this.#member(key as string, each, `${path}.${shown(key as string)}`)));
    }
    return new Members([['$map', entries.map(([key, each], i) =>
      [this.tree(key, `${path} key ${i}`), this.tree(each, `${path} value ${i}`)])]]);
  }

  #pairs(value: URLSearchParams | FormData, path: string): Tree {
    return [...value as Iterable<[string, unknown]>].map(([name, each]) => {
      if (typeof each !== 'string') throw new NotCanonicalError(`${path}.${name}`, 'a file');
      return [name, each];
    });
  }

  #member(name: string, value: unknown, path: string): [string, Tree] {
    return [name.startsWith('$') ? `$${name}` : name, this.tree(value, path)];
  }

  #members(value: object, path: string): Tree {
    if (Object.getOwnPropertySymbols(value).some((each) =>
      Object.prototype.propertyIsEnumerable.call(value, each))) {
      throw new NotCanonicalError(path, 'a member that is named by a symbol');
    }
    return new Members(Object.entries(value).filter(([, each]) => each !== undefined)
      .map(([name, each]) => this.#member(name, each, `${path}.${shown(name)}`)));
  }
}

/**
 * The canonical text of a value: what identifies it in all of Semel's clients. Members that are
 * undefined are absent.
 *
 * Throws a NotCanonicalError that names the place of what cannot be canonical: functions, symbols,
 * promises, streams, instances of classes without `toJSON`, NaN, integers beyond 2^53 - 1 that are
 * no bigint, values that contain themselves, lone surrogates.
 */
export function canonicalOf(value: unknown, path = '$'): string {
  return write(new Reader().tree(value, path), path);
}

function nameOf(what: string, name: unknown, bytesMax = Infinity): string {
  if (typeof name !== 'string') throw new KeyError(`${what}: a ${kindOf(name)} is no text`);
  if (name === '') throw new KeyError(`${what} is empty`, { reason: 'key_empty' });
  if (!isWellFormed(name)) throw new KeyError(`${what} has a lone surrogate`);
  if (Buffer.byteLength(name) > bytesMax) {
    throw new KeyError(`${what} is longer than ${bytesMax} bytes`, { reason: 'key_too_long' });
  }
  return name;
}

/** The name of an operation, which is checked. */
export function operationName(name: unknown): string {
  return nameOf('operation', name, operationBytesMax);
}

export function scopeText(scope: Scope | null): string {
  if (scope === null) return 'null';
  if (typeof scope !== 'object') throw new KeyError(`scope: a ${kindOf(scope)}`);
  const names = Object.keys(scope);
  if (names.length === 0) {
    throw new KeyError('scope: neither a tenant nor a user', { reason: 'key_empty' });
  }
  for (const name of names) {
    if (name !== 'tenant' && name !== 'user') throw new KeyError(`scope: no member ${name}`);
    nameOf(`scope.${name}`, scope[name]);
  }
  return canonicalOf({ ...scope });
}

/**
 * The identity of a call: of its operation (a name of 1 to 512 bytes), its scope and its arguments, an
 * object with a member for each of them or one payload.
 *
 * Throws a KeyError for an operation or a scope that is empty, and a NotCanonicalError for arguments
 * that cannot be canonical.
 */
export function identityOf(operation: string, scope: Scope | null, args: unknown): Identity {
  return identityOfText(operation, scope, canonicalOf(args, 'arguments'));
}

/** The same for arguments whose canonical text is known. */
export function identityOfText(operation: string, scope: Scope | null, args: string): Identity {
  const name = operationName(operation);
  const canonical = `[${JSON.stringify(name)},${scopeText(scope)},${args}]`;
  const key = createHash('sha256').update(canonical).digest('hex');
  return { canonical, key, fingerprint: key.slice(0, 32) };
}
