import { createHash } from 'node:crypto';
import type { Codec } from './codec.js';

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
   * The payload: the same key with another one is a MismatchError. Bytes and strings are taken as
   * they are, other values as JSON with sorted members.
   */
  fingerprint?: unknown;
  /** When the work was first requested, for namespaces with a window. */
  firstSent?: Date;
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
}

/** How many milliseconds a timer takes at most; a longer one would end at once. */
export const timerMax = 2 ** 31 - 1;

/** A time as the node takes it. */
export function ms(name: string, value: Milliseconds): string {
  if (!Number.isFinite(value) || value < 0) {
    throw new RangeError(`${name}: ${value} is no number of milliseconds`);
  }
  return String(Math.ceil(value));
}

export function policyWords(policy: Policy): string[] {
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
  time('FAILURE-TTL', policy.failureTtl);
  time('ATTEMPTS-TTL', policy.attemptsTtl);
  time('WINDOW', policy.window);
  time('AHEAD', policy.ahead);
  time('RETRY-AFTER-MAX', policy.retryAfterMax);
  if (policy.attemptsMax !== undefined) words.push('ATTEMPTS-MAX', String(policy.attemptsMax));
  text('ON-LEASE-END', policy.onLeaseEnd);
  text('ON-FAILURE', policy.onFailure);
  text('ON-EXCEPTION', policy.onException);
  if (policy.strict) words.push('STRICT');
  if (policy.failOpen) words.push('FAIL-OPEN');
  if (policy.issued) words.push('ISSUED');
  if (policy.fair) words.push('FAIR');
  return words;
}

/** The value as RFC 8785 writes it, as far as JSON.stringify does. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member;
    return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** The words for a fingerprint: SHA-256 of bytes (2) or of canonical JSON (4), 128 bits of it. */
export function fingerprintWords(payload: unknown): string[] {
  if (payload === undefined) return [];
  const raw = typeof payload === 'string' || payload instanceof Uint8Array;
  const bytes = raw ? payload : canonical(payload);
  if (bytes === undefined) throw new TypeError(`fingerprint: a ${typeof payload} is no JSON`);
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 32);
  return ['FINGERPRINT', digest, 'ALGORITHM', raw ? '2' : '4'];
}
