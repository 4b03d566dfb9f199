import { createHash } from 'node:crypto';
import { types } from 'node:util';
import type { Codec } from './codec.js';
import { shown } from './canonical.js';
import { KeyError, OptionError } from './errors.js';
import { bytesOf, canonicalOf, identityOf, kindOf, operationName, scopeText,
  type Scope } from './identity.js';
import type { Observer } from './observer.js';

/** Times are in milliseconds. `Infinity` is a wait that only the signal ends. */
export type Milliseconds = number;

/** What a namespace is declared with. What is not given is left to `as`, or to the default. */
export interface Policy {
  as?: 'call' | 'debounce' | 'dedup' | 'fair-lock' | 'lock' | 'message' | 'nonce' | 'payment'
    | 'token';
  lease?: Milliseconds;
  /** How long results are replayed. */
  resultTtl?: Milliseconds;
  /** How long the key stays taken; never shorter than resultTtl. */
  uniqueTtl?: Milliseconds;
  /**
   * A sliding window: each duplicate that is replayed lets resultTtl and uniqueTtl begin again, up to
   * this long after the completion. At least as long as these; without it the window is fixed.
   */
  slidingMax?: Milliseconds;
  failureTtl?: Milliseconds;
  attemptsTtl?: Milliseconds;
  window?: Milliseconds;
  ahead?: Milliseconds;
  retryAfterMax?: Milliseconds;
  attemptsMax?: number;
  onLeaseEnd?: 'retry' | 'in-doubt';
  onFailure?: 'release' | 'keep';
  onException?: Ending;
  strict?: boolean;
  failOpen?: boolean;
  issued?: boolean;
  fair?: boolean;
}

/** What becomes of a claim whose work failed: run again, final, or for an operator to decide. */
export type Ending = 'release' | 'keep' | 'in-doubt';

export interface CallOptions {
  /** How long the owner may be silent. It is renewed at each third of it while the work runs. */
  lease?: Milliseconds;
  /** How long to wait while another owner does the work; by default not at all. */
  wait?: Milliseconds;
  /** Ends the call; the function's signal is aborted as well. */
  signal?: AbortSignal;
  /**
   * The payload: the same key with another one is a MismatchError. Bytes are taken as they are,
   * other values in their canonical form (docs/identity.md); what has none is a NotCanonicalError.
   */
  fingerprint?: unknown;
  /**
   * The name of what runs, 1 to 512 bytes: another operation under the same key is a MismatchError
   * as well. The payload then are its arguments, an object with a member for each.
   */
  operation?: string;
  /** Whose call it is; together with `operation`. */
  scope?: Scope;
  /** When the work was first requested, for namespaces with a window: a Date, or Unix milliseconds. */
  firstSent?: Date | number;
  /** A label of at most 64 bytes, for people. */
  owner?: string;
  /** How results become bytes; by default JSON. */
  codec?: Codec;
  /** What a failure means, whatever was thrown; by default as the namespace says. */
  onFailure?: Ending;
  /**
   * How long the lease of one claim is renewed at most, by default an hour: a function that never
   * ends does not hold its key for ever.
   */
  runMax?: Milliseconds;
  /** How long a call is repeated while the node does not answer, by default 5 s. */
  patience?: Milliseconds;
  /** Is told of calls that did not run: that were answered by a kept result, or refused. */
  observer?: Observer;
}

/** How many milliseconds a timer takes at most; a longer one would end at once. */
export const timerMax = 2 ** 31 - 1;

/** How long a time of the node is at most: 100 years. */
const nodeTimeMax = 100 * 366 * 24 * 3600 * 1000;
const ownerBytesMax = 64;
const attemptsMost = 2 ** 32 - 1;

/** A time as the node takes it: 0, or 1 ms and more; parts of a millisecond count as one. */
export function ms(name: string, value: Milliseconds, least = 0): string {
  insistOnTime(name, value, least);
  if (value > nodeTimeMax) {
    throw new OptionError(`${name}: ${value}; the most is ${nodeTimeMax} ms`);
  }
  return String(Math.ceil(value));
}

/** A time that is smaller than 1 ms is refused, as nothing is done with it; 0 is what it says. */
function insistOnTime(name: string, value: unknown, least = 1): void {
  if (typeof value !== 'number') throw new OptionError(`${name}: ${kindOf(value)}, not a number`);
  if (value >= 1 || (value === 0 && least === 0)) return;
  throw new OptionError(`${name}: ${value}; the least is ${least === 0 ? '0, or ' : ''}1 ms`);
}

/** The name of a namespace, as the node takes it. */
export function namespaceName(name: unknown): string {
  if (typeof name !== 'string') throw new OptionError(`the namespace: ${kindOf(name)}, not a text`);
  if (/^[A-Za-z0-9_.-]{1,64}$/.test(name)) return name;
  throw new OptionError(`the namespace '${shown(name)}': a name is 1 to 64 bytes of A-Za-z0-9_.-`);
}

const endings: readonly unknown[] = ['release', 'keep', 'in-doubt'];

const checks: { [name in keyof Required<CallOptions>]: (value: unknown) => void } = {
  lease: (value) => void ms('lease', value as number, 1),
  wait: (value) => insistOnTime('wait', value, 0),
  patience: (value) => insistOnTime('patience', value),
  runMax: (value) => insistOnTime('runMax', value),
  signal(value) {
    if (value instanceof AbortSignal) return;
    throw new OptionError(`signal: ${kindOf(value)}, not an AbortSignal`);
  },
  firstSent: (value) => void unixTime(value),
  owner(value) {
    if (typeof value !== 'string') throw new OptionError(`owner: ${kindOf(value)}, not a text`);
    if (value === '') throw new OptionError('owner: an empty name');
    const bytes = Buffer.byteLength(value);
    if (bytes <= ownerBytesMax) return;
    throw new OptionError(`owner: '${shown(value)}' of ${bytes} bytes; the limit is ${ownerBytesMax}`);
  },
  codec(value) {
    const { encode, decode } = (value ?? {}) as Partial<Codec>;
    if (typeof encode === 'function' && typeof decode === 'function') return;
    throw new OptionError('codec: it needs encode and decode');
  },
  onFailure(value) {
    if (!endings.includes(value)) throw new OptionError(`onFailure: ${String(value)}`);
  },
  observer(value) {
    if (typeof value === 'function' && !types.isGeneratorFunction(value)) return;
    throw new OptionError(`observer: ${kindOf(value)}, not a function that runs when it is called`);
  },
  fingerprint: () => {},
  operation: (value) => void operationName(value),
  scope: (value) => void scopeText(value as Scope),
};

/** Refuses an option that is not known, or whose value cannot be kept. */
export function checked<T extends object>(options: T, more: readonly string[] = []): T {
  for (const [name, value] of Object.entries(options)) {
    if (more.includes(name)) continue;
    if (!Object.hasOwn(checks, name)) throw new OptionError(`an option that is not known: ${name}`);
    if (value !== undefined) checks[name as keyof CallOptions](value);
  }
  return options;
}

/** The options of a call over those of its namespace: undefined is "not given". */
export function merged(defaults: object, given: object): CallOptions {
  return { ...defaults,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) };
}

/** Milliseconds since 1970, which is a time as any other. */
export function unixTime(value: unknown): string {
  const time: unknown = value instanceof Date ? value.getTime() : value;
  if (typeof time !== 'number') throw new OptionError(`firstSent: ${kindOf(value)}, not a time`);
  if (!(time >= 0 && time <= Number.MAX_SAFE_INTEGER)) {
    throw new OptionError(`firstSent: ${time}; a time is 0 to ${Number.MAX_SAFE_INTEGER}`);
  }
  return String(Math.trunc(time));
}

const policyNames = ['as', 'lease', 'resultTtl', 'uniqueTtl', 'slidingMax', 'failureTtl',
  'attemptsTtl', 'window', 'ahead', 'retryAfterMax', 'attemptsMax', 'onLeaseEnd', 'onFailure',
  'onException', 'strict', 'failOpen', 'issued', 'fair'];

export function policyWords(policy: Policy): string[] {
  const unknown = Object.keys(policy).find((name) => !policyNames.includes(name));
  if (unknown !== undefined) throw new OptionError(`a term that is not known: ${unknown}`);
  const words: string[] = [];
  const text = (name: string, value: string | undefined): void => {
    if (value !== undefined) words.push(name, value.toUpperCase());
  };
  const time = (name: string, value: Milliseconds | undefined): void => {
    if (value !== undefined) words.push(name, ms(name, value));
  };
  if (policy.as !== undefined) words.push('AS', policy.as);
  time('LEASE', policy.lease);
  time('RESULT-TTL', policy.resultTtl);
  time('UNIQUE-TTL', policy.uniqueTtl);
  time('SLIDING-MAX', policy.slidingMax);
  time('FAILURE-TTL', policy.failureTtl);
  time('ATTEMPTS-TTL', policy.attemptsTtl);
  time('WINDOW', policy.window);
  time('AHEAD', policy.ahead);
  time('RETRY-AFTER-MAX', policy.retryAfterMax);
  const { attemptsMax } = policy;
  if (attemptsMax !== undefined
    && !(Number.isInteger(attemptsMax) && attemptsMax >= 0 && attemptsMax <= attemptsMost)) {
    throw new OptionError(`attemptsMax: ${attemptsMax}; it is 0 to ${attemptsMost}`);
  }
  if (attemptsMax !== undefined) words.push('ATTEMPTS-MAX', String(attemptsMax));
  text('ON-LEASE-END', policy.onLeaseEnd);
  text('ON-FAILURE', policy.onFailure);
  text('ON-EXCEPTION', policy.onException);
  if (policy.strict) words.push('STRICT');
  if (policy.failOpen) words.push('FAIL-OPEN');
  if (policy.issued) words.push('ISSUED');
  if (policy.fair) words.push('FAIR');
  return words;
}

/**
 * The words for a fingerprint, 128 bits of SHA-256: of bytes (2), of a canonical payload (7), or of
 * the operation, the scope and the arguments (9).
 */
export function fingerprintWords(options: CallOptions): string[] {
  const { operation, scope, fingerprint: payload } = options;
  const words = (digest: string, algorithm: number): string[] =>
    ['FINGERPRINT', digest.slice(0, 32), 'ALGORITHM', String(algorithm)];
  if (operation !== undefined) {
    const args = payload === undefined ? {} : payload;
    return words(identityOf(operation, scope ?? null, args).fingerprint, 9);
  }
  if (scope !== undefined) throw new KeyError('a scope needs an operation');
  if (payload === undefined) return [];
  const bytes = bytesOf(payload);
  const text = bytes ?? canonicalOf(payload, 'fingerprint');
  return words(createHash('sha256').update(text).digest('hex'), bytes ? 2 : 7);
}
