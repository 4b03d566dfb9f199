// Work that is not done when a function returns. It is never a result.
import { types } from 'node:util';
import { LazyError } from './errors.js';
import { isPlain, kindOf } from './identity.js';

const objectsMax = 100_000; // that are looked at in one result

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

function inside(value: object): Iterable<unknown> {
  try {
    if (types.isMap(value)) return [...value].flat();
    if (types.isSet(value) || Array.isArray(value)) return value as Iterable<unknown>;
    return isPlain(value) ? Object.values(value) : [];
  } catch { // as in hasMethod()
    return [];
  }
}

/**
 * Throws a LazyError for a result that stands for work still to be done: a function, an iterator, a
 * stream, a promise inside of an object. Promises in it are taken as handled: the error tells of them.
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
