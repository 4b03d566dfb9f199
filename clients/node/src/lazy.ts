// Work that is not done when a function returns. It is never a result.
import { EventEmitter } from 'node:events';
import { types } from 'node:util';
import { LazyError } from './errors.js';
import { isPlain, kindOf } from './identity.js';

const objectsMax = 100_000; // that are looked at in one result
// The names of a million elements take a second: of a long array only the elements are looked at ..
const namedMax = 10_000;
const sparseMin = 2 ** 25; // .. unless it is so long that most are not there

/** Refuses, before the claim, what is no function or would run nothing when it is called. */
export function refuseLazy(fn: unknown): void {
  if (typeof fn !== 'function') throw new TypeError(`a ${kindOf(fn)} is not a function`);
  if (types.isGeneratorFunction(fn)) {
    throw new LazyError(`${kindOf(fn)} is a generator function: a call of it runs nothing`);
  }
}

function hasMethod(value: object, name: string | symbol): boolean {
  try {
    return typeof (value as Record<string | symbol, unknown>)[name] === 'function';
  } catch { // a getter or a proxy: the work was done, whatever it gave
    return false;
  }
}

/** What work a value stands for that is still to be done. */
function pending(value: object): string | undefined {
  if (types.isPromise(value) || hasMethod(value, 'then')) return 'a promise';
  if (types.isGeneratorObject(value)) return 'a generator';
  if (hasMethod(value, 'next')) return 'an iterator';
  return undefined;
}

/** Besides, of a result itself. In a result there may be sockets of work that was done. */
function pendingResult(value: object): string | undefined {
  if (value instanceof ReadableStream || value instanceof WritableStream) return 'a stream';
  if (hasMethod(value, 'pipe') && hasMethod(value, 'on')) {
    const { readableEnded, destroyed } = value as { readableEnded?: unknown; destroyed?: unknown };
    return readableEnded === true || destroyed === true ? undefined : 'a stream';
  }
  if (hasMethod(value, Symbol.asyncIterator)) return 'an asynchronous iterable';
  return hasMethod(value, 'subscribe') ? 'an observable' : undefined;
}

const containers: ReadonlySet<unknown> = new Set([Object, Array, Map, Set, Error, AggregateError,
  EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]);

/**
 * Whether it is of Node.js or of the web: a socket, a timer, a Response. In a result they are of work
 * that was done, and what they hold is their own.
 */
function isOfPlatform(value: object): boolean {
  if (ArrayBuffer.isView(value) || value instanceof EventEmitter || hasMethod(value, 'hasRef')) {
    return true;
  }
  for (let each = Object.getPrototypeOf(value) as object | null; each !== null;
    each = Object.getPrototypeOf(each) as object | null) {
    const made: unknown = Object.getOwnPropertyDescriptor(each, 'constructor')?.value;
    if (typeof made === 'function' && made.name !== '' && !containers.has(made)
      && (globalThis as Record<string, unknown>)[made.name] === made) return true;
  }
  return false;
}

/** What an object of any class holds itself: also by symbols, and an array's named members. */
function* members(value: object): Iterable<unknown> {
  if (types.isMap(value)) for (const pair of value) yield* pair;
  if (types.isSet(value)) yield* value;
  if (Array.isArray(value) && value.length > namedMax && value.length < sparseMin) {
    yield* value;
    return;
  }
  for (const name of Reflect.ownKeys(value)) {
    const own = Reflect.getOwnPropertyDescriptor(value, name);
    if (own !== undefined && 'value' in own) yield own.value;
    // A getter of a class may do anything; one of a plain object is part of its value.
    else if (own?.enumerable && isPlain(value)) yield Reflect.get(value, name);
  }
}

function* inside(value: object): Iterable<unknown> {
  try {
    if (!isOfPlatform(value)) yield* members(value);
  } catch { // as in hasMethod()
  }
}

/**
 * Throws a LazyError for a result that stands for work still to be done: a function, an iterator, a
 * stream, a promise inside of an object of any class, but not in #private members. Such promises are
 * taken as handled: the error tells of them.
 */
export function refuseLazyResult(value: unknown): void {
  let found: string | undefined;
  if (typeof value === 'function') found = 'a function';
  const objects = new Set<object>();
  if (typeof value === 'object' && value !== null) {
    found = pendingResult(value);
    objects.add(value);
  }
  for (const each of objects) { // grows meanwhile
    const what = pending(each);
    if (types.isPromise(each)) each.catch(() => {});
    found ??= what;
    if (what !== undefined) continue;
    for (const member of inside(each)) {
      if (objects.size > objectsMax) break;
      if (typeof member === 'object' && member !== null) objects.add(member);
    }
  }
  if (found !== undefined) {
    throw new LazyError(`the function gave ${found}: work that is still to be done`);
  }
}
